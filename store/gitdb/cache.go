package gitdb

import "sync"

// cache is a bounded map in two generations: when the young one is full it
// becomes the old one, and the old one is dropped. What is used stays, at the
// price of a map lookup and no list. Safe for concurrent use.
type cache[K comparable] struct {
	mu         sync.Mutex
	young, old map[K]cached
	size       int64 // of the young generation
	budget     int64 // of both
	maxItem    int
}

type cached struct {
	typ  ObjectType
	data []byte
}

// cacheOverhead is roughly what a map entry costs beside the data.
const cacheOverhead = 96

func (c *cache[K]) get(k K) (cached, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.young[k]
	if !ok {
		if v, ok = c.old[k]; ok {
			delete(c.old, k)
			c.put(k, v)
		}
	}
	return v, ok
}

func (c *cache[K]) add(k K, t ObjectType, data []byte) {
	if len(data) > c.maxItem {
		return
	}
	c.mu.Lock()
	c.put(k, cached{t, data})
	c.mu.Unlock()
}

func (c *cache[K]) put(k K, v cached) {
	if c.budget <= 0 {
		return
	}
	if c.young == nil {
		c.young = make(map[K]cached)
	}
	if _, ok := c.young[k]; !ok {
		c.size += int64(len(v.data)) + cacheOverhead
	}
	c.young[k] = v
	if c.size > c.budget/2 {
		c.old, c.young, c.size = c.young, nil, 0
	}
}

func (c *cache[K]) resize(budget int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.budget = budget
	c.young, c.old, c.size = nil, nil, 0
}

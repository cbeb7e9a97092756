package retention

import "strings"

// owners are the names of the collections that own keys.
type owners map[string]bool

func ownersOf(names []string) owners {
	o := make(owners, len(names))
	for _, n := range names {
		o[n] = true
	}
	return o
}

// of returns the longest name that key is in, "" if there is none.
func (o owners) of(key string) string {
	for name := key; len(o) > 0; {
		if o[name] {
			return name
		}
		i := strings.LastIndexByte(name, ':')
		if i < 0 {
			break
		}
		name = name[:i]
	}
	return ""
}

CREATE INDEX idx_metadata_recency ON metadata(last_timestamp DESC, target_type, target_value, key);
PRAGMA user_version = 5;

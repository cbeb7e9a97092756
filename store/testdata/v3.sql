CREATE INDEX idx_metadata_log_timestamp ON metadata_log(timestamp, target_type, target_value, key);
PRAGMA user_version = 3;

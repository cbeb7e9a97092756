ALTER TABLE metadata ADD COLUMN source_ref TEXT;
CREATE INDEX idx_metadata_source_ref ON metadata(source_ref);
PRAGMA user_version = 2;

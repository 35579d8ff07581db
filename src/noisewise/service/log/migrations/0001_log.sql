CREATE TABLE loops (
  id {serial},
  name TEXT NOT NULL UNIQUE,
  salt TEXT NOT NULL,
  settings TEXT NOT NULL,
  paused INTEGER NOT NULL DEFAULT 0,
  seq BIGINT NOT NULL DEFAULT 0,
  expired BIGINT NOT NULL DEFAULT 0,
  base BIGINT NOT NULL DEFAULT 0,
  created {float} NOT NULL
);
CREATE TABLE events (
  id {serial},
  loop BIGINT NOT NULL REFERENCES loops (id) ON DELETE CASCADE,
  seq BIGINT,
  event_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('decide', 'reward', 'expire', 'settings', 'rollback')),
  reward_id TEXT NOT NULL DEFAULT '',
  at {float} NOT NULL,
  body TEXT NOT NULL,
  UNIQUE (loop, event_id, kind, reward_id)
);
CREATE UNIQUE INDEX events_numbered ON events (loop, seq) WHERE seq IS NOT NULL;
CREATE INDEX events_new ON events (loop, id) WHERE seq IS NULL;
CREATE TABLE snapshots (
  loop BIGINT NOT NULL REFERENCES loops (id) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  at {float} NOT NULL,
  digest TEXT NOT NULL,
  state {bytes} NOT NULL,
  PRIMARY KEY (loop, seq)
);
CREATE TABLE owners (
  loop BIGINT PRIMARY KEY REFERENCES loops (id) ON DELETE CASCADE,
  process TEXT NOT NULL,
  fence BIGINT NOT NULL,
  until {float} NOT NULL
);
CREATE TABLE tokens (
  id {serial},
  name TEXT NOT NULL UNIQUE,
  sha256 TEXT NOT NULL UNIQUE,
  scopes TEXT NOT NULL,
  created {float} NOT NULL,
  revoked {float}
)

-- Version 0.1 closes an epoch behind a lock on its row, which this version's view hands on to the table, and then comes
-- here; whoever changed the same row came here first and waited for it with the standing held. One of the two was
-- aborted: an instance of 0.1 that ended the closing so left its journal and its leases behind at each third stop.
-- The row comes first now, for all of them.
CREATE OR REPLACE FUNCTION instance_0_1() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	v_ttl_ms integer := greatest(0, ceil(extract(epoch from new.lease_until - clock_timestamp()) * 1000))::integer;
	v_seq bigint;
	b instance_beat;
BEGIN
	IF tg_op = 'INSERT' THEN
		INSERT INTO instance_beat (id, epoch, beat, state, ttl_ms, lease_until, applied_seq, started_at, ended_at, is_0_1)
			VALUES (new.id, new.epoch, 1, new.state, v_ttl_ms, new.lease_until, coalesce(new.applied_seq, 0),
				coalesce(new.started_at, clock_timestamp()), new.ended_at, true);
		RETURN new;
	END IF;
	IF new.state = 'live' AND old.state = 'joining' THEN
		PERFORM pg_advisory_xact_lock_shared(hashtextextended('control log', 0));
		SELECT coalesce(max(l.seq), 0) INTO v_seq FROM control_log l;
		IF v_seq <> new.applied_seq THEN
			RETURN null;
		END IF;
	END IF;
	PERFORM 1 FROM instance_beat x WHERE x.id = new.id AND x.epoch = new.epoch ORDER BY x.beat DESC LIMIT 1 FOR UPDATE;
	IF new.state = 'left' THEN
		-- What was granted while its leases were being closed is closed the next time.
		PERFORM pg_advisory_xact_lock(hashtextextended('money ' || new.id || ' ' || new.epoch, 0));
		IF EXISTS (SELECT 1 FROM lease l WHERE l.instance_id = new.id AND l.epoch = new.epoch AND l.state = 'open') THEN
			RAISE EXCEPTION 'a lease was opened meanwhile' USING errcode = 'serialization_failure';
		END IF;
	END IF;
	PERFORM pg_advisory_xact_lock(hashtextextended('standing ' || new.id || ' ' || new.epoch, 0));
	SELECT * INTO b FROM instance_beat x WHERE x.id = new.id AND x.epoch = new.epoch ORDER BY x.beat DESC LIMIT 1;
	IF new.state = 'live' AND b.state NOT IN ('joining', 'live', 'silent')
		OR new.state = 'dead' AND b.beat <> old.beat
		OR b.state IN ('closing', 'left') AND new.state <> 'left' THEN
		RETURN null;
	END IF;
	UPDATE instance_beat x SET beat = b.beat + 1, state = new.state, applied_seq = greatest(b.applied_seq, new.applied_seq),
			ttl_ms = CASE WHEN new.state = 'live' THEN v_ttl_ms ELSE b.ttl_ms END, lease_until = new.lease_until, ended_at = new.ended_at
		WHERE x.id = new.id AND x.epoch = new.epoch AND x.beat = b.beat;
	RETURN new;
END $$;

CREATE TABLE "instance_beat" (
	"id" text NOT NULL,
	"epoch" integer NOT NULL,
	"beat" bigint NOT NULL,
	"state" text NOT NULL,
	"ttl_ms" integer NOT NULL,
	"lease_until" timestamp with time zone NOT NULL,
	"applied_seq" bigint DEFAULT 0 NOT NULL,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	"ended_at" timestamp with time zone,
	"is_0_1" boolean DEFAULT false NOT NULL,
	CONSTRAINT "instance_beat_id_epoch_beat_pk" PRIMARY KEY("id","epoch","beat")
);
--> statement-breakpoint
CREATE TABLE "server_seen" (
	"mark" text NOT NULL,
	"quiet" boolean NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "server_seen_mark_quiet_pk" PRIMARY KEY("mark","quiet")
);
--> statement-breakpoint
CREATE INDEX "instance_beat_unfinished" ON "instance_beat" USING btree ("state") WHERE "instance_beat"."state" <> 'left';
--> statement-breakpoint
-- Who waits for one of these leases counts from when he sees the row: what is left of it now is enough.
INSERT INTO "instance_beat" ("id", "epoch", "beat", "state", "ttl_ms", "lease_until", "applied_seq", "started_at", "ended_at", "is_0_1")
	SELECT "id", "epoch", 1, "state", greatest(0, ceil(extract(epoch from "lease_until" - clock_timestamp()) * 1000))::integer,
		"lease_until", "applied_seq", "started_at", "ended_at", true FROM "instance";
--> statement-breakpoint
DROP TABLE "instance";
--> statement-breakpoint
CREATE VIEW "instance_now" AS
	SELECT b.* FROM "instance_beat" b
	WHERE NOT EXISTS (SELECT 1 FROM "instance_beat" n WHERE n."id" = b."id" AND n."epoch" = b."epoch" AND n."beat" > b."beat");
--> statement-breakpoint
-- The log itself is the clock. What the clock counted and the log does not have any more is not counted again.
INSERT INTO "control_log" ("seq", "kind", "subject", "payload")
	SELECT c."seq", 'catalog', 'schema', '{}' FROM "control_clock" c WHERE c."seq" > (SELECT coalesce(max(l."seq"), 0) FROM "control_log" l);
--> statement-breakpoint
DROP TABLE "control_clock";
--> statement-breakpoint
-- Entries of a transaction that has more to do, appended at its end.
CREATE TABLE "control_pending" (
	"id" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	"kind" text NOT NULL,
	"subject" text NOT NULL,
	"payload" jsonb NOT NULL
);
--> statement-breakpoint
CREATE FUNCTION control_append_pending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('tollgate.control_at_commit', 'off', true);
	PERFORM control_append(new.kind, new.subject, new.payload);
	DELETE FROM control_pending WHERE id = new.id;
	RETURN null;
END $$;
--> statement-breakpoint
CREATE CONSTRAINT TRIGGER control_pending_commit AFTER INSERT ON control_pending
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION control_append_pending();
--> statement-breakpoint
-- What follows is for instances of version 0.1 beside this one, and goes with the next version. They read and write a
-- table of instances and a clock of the control log: here they find views of those names, whose triggers keep the locks
-- that this version goes by.
CREATE VIEW "control_clock" AS SELECT 1::smallint AS "id", coalesce((SELECT max("seq") FROM "control_log"), 0)::bigint AS "seq";
--> statement-breakpoint
CREATE FUNCTION control_clock_0_1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF tg_op = 'INSERT' THEN
		RETURN null;
	END IF;
	PERFORM pg_advisory_xact_lock(hashtextextended('control log', 0));
	SELECT coalesce(max(seq), 0) + 1 INTO new.seq FROM control_log;
	RETURN new;
END $$;
--> statement-breakpoint
CREATE TRIGGER control_clock_0_1 INSTEAD OF INSERT OR UPDATE ON "control_clock" FOR EACH ROW EXECUTE FUNCTION control_clock_0_1();
--> statement-breakpoint
CREATE VIEW "instance" AS
	SELECT "id", "epoch", CASE "state" WHEN 'silent' THEN 'live' WHEN 'closing' THEN 'dead' ELSE "state" END AS "state",
		"lease_until", "applied_seq", "started_at", "ended_at", "beat" FROM "instance_now";
--> statement-breakpoint
-- Its rows are updated where they are: 0.1 locks them, and would take a row that was removed under its hands for the end
-- of the epoch.
CREATE FUNCTION instance_0_1() RETURNS trigger LANGUAGE plpgsql AS $$
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
	ELSIF new.state = 'left' THEN
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
--> statement-breakpoint
CREATE TRIGGER instance_0_1 INSTEAD OF INSERT OR UPDATE ON "instance" FOR EACH ROW EXECUTE FUNCTION instance_0_1();

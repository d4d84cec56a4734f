CREATE SEQUENCE "recall_ticket" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE TABLE "recall" (
	"budget_id" text NOT NULL,
	"ticket" bigint NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"seq_0_1" bigint,
	"at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "recall_budget_id_ticket_pk" PRIMARY KEY("budget_id","ticket")
);
--> statement-breakpoint
DROP INDEX "lease_instance";--> statement-breakpoint
ALTER TABLE "lease" ADD COLUMN "recalled" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX "recall_at" ON "recall" USING btree ("at");--> statement-breakpoint
CREATE INDEX "lease_instance_open" ON "lease" USING btree ("instance_id","epoch") WHERE "lease"."state" = 'open';
--> statement-breakpoint
-- For version 0.1 beside this one, until the next: it keeps grants and settlements from an epoch that is being closed by
-- locking the instance's row, which this version does not. So the lease itself refuses.
CREATE FUNCTION lease_0_1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF tg_name = 'lease_closed_0_1' THEN
		RAISE EXCEPTION 'the lease is closed' USING errcode = 'serialization_failure';
	END IF;
	PERFORM pg_advisory_xact_lock_shared(hashtextextended('money ' || new.instance_id || ' ' || new.epoch, 0));
	IF EXISTS (SELECT 1 FROM instance_now i WHERE i.id = new.instance_id AND i.epoch = new.epoch AND i.state IN ('closing', 'left')) THEN
		RAISE EXCEPTION 'instance is not live' USING errcode = 'TG001';
	END IF;
	RETURN new;
END $$;
--> statement-breakpoint
CREATE TRIGGER lease_opened_0_1 BEFORE INSERT ON "lease" FOR EACH ROW
	WHEN (new."state" = 'open' AND new."granted_nano_usd" > 0) EXECUTE FUNCTION lease_0_1();
--> statement-breakpoint
CREATE TRIGGER lease_granted_0_1 BEFORE UPDATE ON "lease" FOR EACH ROW
	WHEN (new."granted_nano_usd" - old."granted_nano_usd" > new."settled_nano_usd" - old."settled_nano_usd") EXECUTE FUNCTION lease_0_1();
--> statement-breakpoint
CREATE TRIGGER lease_closed_0_1 BEFORE UPDATE ON "lease" FOR EACH ROW
	WHEN (old."state" = 'closed' AND new."state" = 'closed' AND new."granted_nano_usd" = old."granted_nano_usd"
		AND (new."settled_nano_usd" <> old."settled_nano_usd" OR new."returned_nano_usd" <> old."returned_nano_usd"))
	EXECUTE FUNCTION lease_0_1();

--> statement-breakpoint
-- 0.1 asks for idle credit through the control log. A recall of this version that stands there too has a ticket.
CREATE FUNCTION recall_0_1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO recall (budget_id, ticket, instance_id, epoch)
		VALUES (new.subject, nextval('recall_ticket'), new.payload ->> 'instance', (new.payload ->> 'epoch')::integer);
	PERFORM pg_notify('tollgate_recall', '');
	RETURN null;
END $$;
--> statement-breakpoint
CREATE TRIGGER recall_0_1 AFTER INSERT ON "control_log" FOR EACH ROW
	WHEN (new."kind" = 'recall' AND new."payload" ->> 'ticket' IS NULL) EXECUTE FUNCTION recall_0_1();

CREATE TABLE "alert_mark" (
	"account_id" text NOT NULL,
	"mark" text NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "alert_mark_account_id_mark_pk" PRIMARY KEY("account_id","mark")
);
--> statement-breakpoint
CREATE TABLE "alert_touched" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL
);
--> statement-breakpoint
ALTER TABLE "batch_notice" ADD COLUMN "type" text;--> statement-breakpoint
ALTER TABLE "batch_notice" ADD COLUMN "data" jsonb;--> statement-breakpoint
ALTER TABLE "batch_notice_setting" ADD COLUMN "events" jsonb DEFAULT '[]'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "batch_notice_setting" ADD COLUMN "events_at" timestamp with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
CREATE INDEX "alert_mark_at" ON "alert_mark" USING btree ("at");--> statement-breakpoint
CREATE INDEX "alert_touched_account" ON "alert_touched" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "api_key_expires" ON "api_key" USING btree ("expires_at") WHERE "api_key"."state" = 'active' and "api_key"."expires_at" is not null;
--> statement-breakpoint
-- Triggers, so that whichever version folds usage or books credit leaves word of it. They wait for nobody: a row that is
-- there is held until this transaction is over, so that who looks sees what it wrote; one that somebody takes away just now
-- counts for nothing, and another one is written.
CREATE FUNCTION alert_touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO alert_touched (account_id)
		SELECT DISTINCT n.account_id FROM new_rows n
		WHERE (EXISTS (SELECT 1 FROM batch_notice_setting s WHERE s.account_id = n.account_id AND s.events <> '[]'::jsonb)
				OR EXISTS (SELECT 1 FROM credit_alert c WHERE c.account_id = n.account_id))
			AND NOT EXISTS (SELECT 1 FROM alert_touched t WHERE t.account_id = n.account_id FOR KEY SHARE SKIP LOCKED);
	RETURN null;
END $$;
--> statement-breakpoint
CREATE TRIGGER alert_touch_spent AFTER UPDATE ON usage_total REFERENCING NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION alert_touch();
--> statement-breakpoint
CREATE TRIGGER alert_touch_first AFTER INSERT ON usage_total REFERENCING NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION alert_touch();
--> statement-breakpoint
CREATE TRIGGER alert_touch_booked AFTER INSERT ON ledger_entry REFERENCING NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION alert_touch();
--> statement-breakpoint
INSERT INTO alert_touched (account_id) SELECT account_id FROM credit_alert;

CREATE TABLE "auto_top_up" (
	"account_id" text PRIMARY KEY NOT NULL,
	"below_nano_usd" bigint NOT NULL,
	"amount_nano_usd" bigint NOT NULL,
	"month_most_nano_usd" bigint NOT NULL,
	"state" text NOT NULL,
	"reason" text,
	"changed_at" timestamp with time zone DEFAULT now() NOT NULL,
	"look_at" timestamp with time zone,
	"tell" text
);
--> statement-breakpoint
CREATE TABLE "auto_top_up_attempt" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"top_up_id" text NOT NULL,
	"amount_nano_usd" bigint NOT NULL,
	"customer_id" text NOT NULL,
	"payment_method_id" text NOT NULL,
	"state" text NOT NULL,
	"reason" text,
	"payment_id" text,
	"begun_at" timestamp with time zone DEFAULT now() NOT NULL,
	"sent_at" timestamp with time zone,
	"ended_at" timestamp with time zone,
	"look_at" timestamp with time zone DEFAULT now() NOT NULL,
	"looks" integer DEFAULT 0 NOT NULL,
	CONSTRAINT "auto_top_up_attempt_top_up_id_unique" UNIQUE("top_up_id")
);
--> statement-breakpoint
CREATE TABLE "auto_top_up_touched" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "card_setup" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"kind" text NOT NULL,
	"state" text DEFAULT 'open' NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"look_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "saved_card" (
	"account_id" text PRIMARY KEY NOT NULL,
	"customer_id" text NOT NULL,
	"payment_method_id" text,
	"brand" text,
	"last_four" text,
	"exp_month" integer,
	"exp_year" integer,
	"saved_at" timestamp with time zone
);
--> statement-breakpoint
CREATE INDEX "auto_top_up_look" ON "auto_top_up" USING btree ("look_at") WHERE "auto_top_up"."state" = 'on' and "auto_top_up"."look_at" is not null;--> statement-breakpoint
CREATE INDEX "auto_top_up_tell" ON "auto_top_up" USING btree ("changed_at") WHERE "auto_top_up"."tell" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "auto_top_up_attempt_open" ON "auto_top_up_attempt" USING btree ("account_id") WHERE "auto_top_up_attempt"."state" in ('begun', 'sent', 'unknown', 'needs_authentication');--> statement-breakpoint
CREATE INDEX "auto_top_up_attempt_look" ON "auto_top_up_attempt" USING btree ("look_at") WHERE "auto_top_up_attempt"."state" in ('begun', 'sent', 'unknown', 'needs_authentication');--> statement-breakpoint
CREATE INDEX "auto_top_up_attempt_account" ON "auto_top_up_attempt" USING btree ("account_id","begun_at");--> statement-breakpoint
CREATE INDEX "card_setup_look" ON "card_setup" USING btree ("look_at") WHERE "card_setup"."state" = 'open';--> statement-breakpoint
CREATE INDEX "card_setup_account" ON "card_setup" USING btree ("account_id") WHERE "card_setup"."state" = 'open';
--> statement-breakpoint
-- Triggers, so that whichever version folds usage, books credit or decides a top-up leaves word of it. A row for each time:
-- nobody waits for another one's.
CREATE FUNCTION auto_top_up_touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO auto_top_up_touched (account_id)
		SELECT DISTINCT n.account_id FROM new_rows n JOIN auto_top_up s ON s.account_id = n.account_id AND s.state = 'on';
	RETURN null;
END $$;
--> statement-breakpoint
CREATE TRIGGER auto_top_up_touch_spent AFTER UPDATE ON usage_total REFERENCING NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION auto_top_up_touch();
--> statement-breakpoint
CREATE TRIGGER auto_top_up_touch_first AFTER INSERT ON usage_total REFERENCING NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION auto_top_up_touch();
--> statement-breakpoint
CREATE TRIGGER auto_top_up_touch_booked AFTER INSERT ON ledger_entry REFERENCING NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION auto_top_up_touch();
--> statement-breakpoint
-- A payment that waited for its owner is looked after as soon as its top-up is decided.
CREATE FUNCTION auto_top_up_wake() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE auto_top_up_attempt SET look_at = now() WHERE top_up_id = new.id AND state = 'needs_authentication';
	RETURN null;
END $$;
--> statement-breakpoint
CREATE TRIGGER auto_top_up_wake AFTER UPDATE OF state ON top_up
	FOR EACH ROW WHEN (new.method = 'card' AND new.state <> 'pending' AND old.state = 'pending') EXECUTE FUNCTION auto_top_up_wake();

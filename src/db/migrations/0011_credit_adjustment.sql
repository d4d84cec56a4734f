CREATE TABLE "credit_adjustment" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"amount_nano_usd" bigint NOT NULL,
	"reason" text NOT NULL,
	"idempotency_key" text NOT NULL,
	"state" text NOT NULL,
	"first_by" text NOT NULL,
	"first_at" timestamp with time zone DEFAULT now() NOT NULL,
	"second_by" text,
	"second_at" timestamp with time zone,
	CONSTRAINT "credit_adjustment_idempotency_key_unique" UNIQUE("idempotency_key")
);
--> statement-breakpoint
ALTER TABLE "top_up_check" ADD COLUMN "former" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "top_up" ADD COLUMN "former" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
-- What was written before may have two that are one reference now: they stay as they are, told apart by a number.
UPDATE "top_up_check" c SET "former" = d.n FROM (
	SELECT top_up_id, row_number() OVER (PARTITION BY upper(regexp_replace(transaction_reference, '[^A-Za-z0-9]', '', 'g')) ORDER BY first_at, top_up_id) - 1 AS n FROM "top_up_check"
) d WHERE d.top_up_id = c.top_up_id AND d.n > 0;--> statement-breakpoint
UPDATE "top_up" t SET "former" = d.n FROM (
	SELECT id, row_number() OVER (PARTITION BY upper(regexp_replace(reference, '[[:space:]]', '', 'g')) ORDER BY created_at, id) - 1 AS n FROM "top_up"
) d WHERE d.id = t.id AND d.n > 0;--> statement-breakpoint
CREATE INDEX "credit_adjustment_state" ON "credit_adjustment" USING btree ("state","id");--> statement-breakpoint
CREATE INDEX "credit_adjustment_first" ON "credit_adjustment" USING btree ("first_by","first_at");--> statement-breakpoint
CREATE UNIQUE INDEX "top_up_check_transaction" ON "top_up_check" USING btree (upper(regexp_replace("transaction_reference", '[^A-Za-z0-9]', '', 'g')),"former");--> statement-breakpoint
CREATE UNIQUE INDEX "top_up_same_reference" ON "top_up" USING btree (upper(regexp_replace("reference", '[[:space:]]', '', 'g')),"former");
CREATE TABLE "idempotency_claim" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"proof" text NOT NULL,
	"request_id" uuid NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"state" text DEFAULT 'running' NOT NULL,
	"answer" "bytea",
	"bytes" integer DEFAULT 0 NOT NULL,
	"claimed_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "idempotency_space" (
	"account_id" text PRIMARY KEY NOT NULL,
	"bytes" bigint NOT NULL
);
--> statement-breakpoint
CREATE INDEX "idempotency_claim_expires" ON "idempotency_claim" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "idempotency_claim_answered" ON "idempotency_claim" USING btree ("account_id","claimed_at") WHERE "idempotency_claim"."state" = 'answered';
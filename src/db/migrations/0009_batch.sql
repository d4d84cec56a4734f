CREATE TABLE "batch" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"key_id" text NOT NULL,
	"endpoint" text NOT NULL,
	"input_file_id" text NOT NULL,
	"completion_window" text NOT NULL,
	"metadata" jsonb,
	"output_expires_s" integer,
	"idempotency_key" text,
	"state" text NOT NULL,
	"ending" text,
	"run" integer DEFAULT 0 NOT NULL,
	"model" text,
	"paused" jsonb,
	"errors" jsonb,
	"total" integer DEFAULT 0 NOT NULL,
	"completed" integer DEFAULT 0 NOT NULL,
	"failed" integer DEFAULT 0 NOT NULL,
	"prompt_tokens" bigint DEFAULT 0 NOT NULL,
	"cached_tokens" bigint DEFAULT 0 NOT NULL,
	"completion_tokens" bigint DEFAULT 0 NOT NULL,
	"reasoning_tokens" bigint DEFAULT 0 NOT NULL,
	"charged_nano_usd" bigint DEFAULT 0 NOT NULL,
	"output_file_id" text,
	"error_file_id" text,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"in_progress_at" timestamp with time zone,
	"finalizing_at" timestamp with time zone,
	"completed_at" timestamp with time zone,
	"failed_at" timestamp with time zone,
	"expired_at" timestamp with time zone,
	"cancelling_at" timestamp with time zone,
	"cancelled_at" timestamp with time zone,
	CONSTRAINT "batch_idempotency" UNIQUE("key_id","idempotency_key")
);
--> statement-breakpoint
CREATE TABLE "batch_line" (
	"batch_id" text NOT NULL,
	"line" integer NOT NULL,
	"request_id" uuid NOT NULL,
	"state" text NOT NULL,
	"part" integer,
	"prompt_tokens" integer DEFAULT 0 NOT NULL,
	"cached_tokens" integer DEFAULT 0 NOT NULL,
	"completion_tokens" integer DEFAULT 0 NOT NULL,
	"reasoning_tokens" integer DEFAULT 0 NOT NULL,
	"charged_nano_usd" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "batch_line_batch_id_line_pk" PRIMARY KEY("batch_id","line")
);
--> statement-breakpoint
ALTER TABLE "usage_event" ADD COLUMN "batch_id" text;--> statement-breakpoint
CREATE INDEX "batch_account" ON "batch" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "batch_open" ON "batch" USING btree ("id") WHERE "batch"."state" in ('validating', 'in_progress', 'finalizing', 'cancelling');
CREATE TABLE "top_up" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"amount_nano_usd" bigint NOT NULL,
	"method" text NOT NULL,
	"reference" text NOT NULL,
	"state" text DEFAULT 'pending' NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"decided_at" timestamp with time zone,
	"decided_by" text,
	CONSTRAINT "top_up_reference_unique" UNIQUE("reference")
);
--> statement-breakpoint
CREATE TABLE "rate_card" (
	"id" text PRIMARY KEY NOT NULL,
	"model" text NOT NULL,
	"version" integer NOT NULL,
	"input" bigint NOT NULL,
	"cached_input" bigint NOT NULL,
	"output" bigint NOT NULL,
	"request" bigint NOT NULL,
	"image" bigint NOT NULL,
	"audio_second" bigint NOT NULL,
	"search" bigint NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "rate_card_model_version" UNIQUE("model","version"),
	CONSTRAINT "rate_card_version_positive" CHECK ("rate_card"."version" >= 1),
	CONSTRAINT "rate_card_rates_not_negative" CHECK (least("rate_card"."input", "rate_card"."cached_input", "rate_card"."output", "rate_card"."request", "rate_card"."image", "rate_card"."audio_second", "rate_card"."search") >= 0)
);
--> statement-breakpoint
CREATE TABLE "control_clock" (
	"id" smallint PRIMARY KEY NOT NULL,
	"seq" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "control_log" (
	"seq" bigint PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"subject" text NOT NULL,
	"payload" jsonb NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "instance" (
	"id" text NOT NULL,
	"epoch" integer NOT NULL,
	"state" text NOT NULL,
	"lease_until" timestamp with time zone NOT NULL,
	"applied_seq" bigint DEFAULT 0 NOT NULL,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	"ended_at" timestamp with time zone,
	CONSTRAINT "instance_id_epoch_pk" PRIMARY KEY("id","epoch")
);
--> statement-breakpoint
CREATE TABLE "account" (
	"id" text PRIMARY KEY NOT NULL,
	"email" text NOT NULL,
	"name" text NOT NULL,
	"state" text DEFAULT 'active' NOT NULL,
	"signed_in_at" timestamp with time zone,
	"topped_up" boolean DEFAULT false NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "account_email_unique" UNIQUE("email")
);
--> statement-breakpoint
CREATE TABLE "api_key" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"name" text NOT NULL,
	"digest" text NOT NULL,
	"prefix" text NOT NULL,
	"last_four" text NOT NULL,
	"state" text DEFAULT 'active' NOT NULL,
	"cap_nano_usd" bigint,
	"models" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"expires_at" timestamp with time zone,
	"requests_per_minute" integer,
	"concurrency_max" integer,
	"replaced_by" text,
	"last_used_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"revoked_at" timestamp with time zone,
	CONSTRAINT "api_key_digest_unique" UNIQUE("digest")
);
--> statement-breakpoint
CREATE TABLE "budget" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"account_id" text NOT NULL,
	"limit_nano_usd" bigint,
	"drawn_nano_usd" bigint DEFAULT 0 NOT NULL,
	"written_off_nano_usd" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "budget_drawn_not_negative" CHECK ("budget"."drawn_nano_usd" >= 0),
	CONSTRAINT "budget_account_has_limit" CHECK ("budget"."kind" = 'key' or "budget"."limit_nano_usd" is not null)
);
--> statement-breakpoint
CREATE TABLE "ledger_entry" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"kind" text NOT NULL,
	"amount_nano_usd" bigint NOT NULL,
	"source_ref" text NOT NULL,
	"actor" text NOT NULL,
	"note" text DEFAULT '' NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "ledger_entry_source_ref_unique" UNIQUE("source_ref")
);
--> statement-breakpoint
CREATE TABLE "lease" (
	"budget_id" text NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"granted_nano_usd" bigint DEFAULT 0 NOT NULL,
	"returned_nano_usd" bigint DEFAULT 0 NOT NULL,
	"settled_nano_usd" bigint DEFAULT 0 NOT NULL,
	"state" text DEFAULT 'open' NOT NULL,
	CONSTRAINT "lease_budget_id_instance_id_epoch_pk" PRIMARY KEY("budget_id","instance_id","epoch"),
	CONSTRAINT "lease_covers_settled" CHECK ("lease"."granted_nano_usd" - "lease"."returned_nano_usd" - "lease"."settled_nano_usd" >= 0)
);
--> statement-breakpoint
CREATE TABLE "lease_op" (
	"id" uuid PRIMARY KEY NOT NULL,
	"budget_id" text NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"kind" text NOT NULL,
	"amount_nano_usd" bigint NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "reservation" (
	"request_id" uuid PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"key_id" text NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"model" text NOT NULL,
	"reserved_nano_usd" bigint NOT NULL,
	"admitted_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "usage_event" (
	"request_id" uuid PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"key_id" text NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"model" text NOT NULL,
	"rate_card_id" text NOT NULL,
	"endpoint" text NOT NULL,
	"streamed" boolean NOT NULL,
	"reserved_nano_usd" bigint NOT NULL,
	"charged_nano_usd" bigint NOT NULL,
	"written_off_nano_usd" bigint DEFAULT 0 NOT NULL,
	"basis" text NOT NULL,
	"ending" text NOT NULL,
	"status" integer NOT NULL,
	"prompt_tokens" integer DEFAULT 0 NOT NULL,
	"cached_tokens" integer DEFAULT 0 NOT NULL,
	"completion_tokens" integer DEFAULT 0 NOT NULL,
	"reasoning_tokens" integer DEFAULT 0 NOT NULL,
	"units" integer DEFAULT 0 NOT NULL,
	"replica" text,
	"admitted_at" timestamp with time zone NOT NULL,
	"first_token_ms" real,
	"duration_ms" real DEFAULT 0 NOT NULL,
	"settled_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "usage_charged_within_reserved" CHECK ("usage_event"."charged_nano_usd" >= 0 and "usage_event"."reserved_nano_usd" >= "usage_event"."charged_nano_usd")
);
--> statement-breakpoint
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "top_up_account" ON "top_up" USING btree ("account_id","created_at");--> statement-breakpoint
CREATE INDEX "instance_state" ON "instance" USING btree ("state");--> statement-breakpoint
CREATE INDEX "api_key_account" ON "api_key" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "budget_account" ON "budget" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "ledger_entry_account" ON "ledger_entry" USING btree ("account_id","created_at");--> statement-breakpoint
CREATE INDEX "lease_instance" ON "lease" USING btree ("instance_id","epoch");--> statement-breakpoint
CREATE INDEX "lease_open" ON "lease" USING btree ("budget_id") WHERE "lease"."state" = 'open';--> statement-breakpoint
CREATE INDEX "lease_op_lease" ON "lease_op" USING btree ("budget_id","instance_id","epoch");--> statement-breakpoint
CREATE INDEX "reservation_account" ON "reservation" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "reservation_instance" ON "reservation" USING btree ("instance_id","epoch");--> statement-breakpoint
CREATE INDEX "usage_event_account" ON "usage_event" USING btree ("account_id","admitted_at");--> statement-breakpoint
CREATE INDEX "usage_event_key" ON "usage_event" USING btree ("key_id","admitted_at");--> statement-breakpoint
CREATE INDEX "usage_event_lease" ON "usage_event" USING btree ("instance_id","epoch");
-- drizzle-kit writes the tables and indexes from `src/**/*.sql.ts`. Written by hand are the first function, because defaults
-- of tables call it, and everything after the indexes.
SET LOCAL check_function_bodies = off;
--> statement-breakpoint
-- The time at which a row is recorded: now, but never within a closed day, even if the server's clock was set back. A
-- statement that writes many rows calls it once.
CREATE FUNCTION books_now() RETURNS timestamptz LANGUAGE sql STABLE AS $$
	SELECT greatest(now(), (SELECT s.closed_until FROM seal_cursor s WHERE s.id = 1))
$$;
--> statement-breakpoint
SET LOCAL check_function_bodies = on;
--> statement-breakpoint
CREATE SEQUENCE "recall_ticket" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
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
CREATE TABLE "batch_lost_request" (
	"request_id" uuid PRIMARY KEY NOT NULL,
	"batch_id" text NOT NULL,
	"account_id" text NOT NULL,
	"lost_at" timestamp with time zone DEFAULT now() NOT NULL
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
CREATE TABLE "promotion" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"adjustment_id" text,
	"last_day" date,
	"left_nano_usd" bigint NOT NULL,
	"spent_nano_usd" bigint NOT NULL,
	"used_nano_usd" bigint NOT NULL,
	"rest_nano_usd" bigint NOT NULL,
	CONSTRAINT "promotion_adjustment_id_unique" UNIQUE("adjustment_id"),
	CONSTRAINT "promotion_not_negative" CHECK ("promotion"."left_nano_usd" >= 0 and "promotion"."rest_nano_usd" >= 0)
);
--> statement-breakpoint
CREATE TABLE "journal_month" (
	"month" date PRIMARY KEY NOT NULL,
	"deferred_nano_usd" bigint NOT NULL,
	"promotional_nano_usd" bigint NOT NULL,
	"entries" jsonb NOT NULL,
	"closed_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
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
	"kind" text DEFAULT 'adjustment' NOT NULL,
	"last_day" date,
	"terms" jsonb,
	CONSTRAINT "credit_adjustment_idempotency_key_unique" UNIQUE("idempotency_key")
);
--> statement-breakpoint
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
	"month" text NOT NULL,
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
CREATE TABLE "stripe_checkout" (
	"id" text PRIMARY KEY NOT NULL,
	"top_up_id" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "stripe_checkout_top_up_id_unique" UNIQUE("top_up_id")
);
--> statement-breakpoint
CREATE TABLE "stripe_clearing" (
	"day" date PRIMARY KEY NOT NULL,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	"finished_at" timestamp with time zone,
	"outcome" jsonb
);
--> statement-breakpoint
CREATE TABLE "stripe_dispute" (
	"id" text PRIMARY KEY NOT NULL,
	"payment_id" text NOT NULL,
	"amount_cents" bigint NOT NULL,
	"state" text NOT NULL,
	"booked" text DEFAULT 'nothing' NOT NULL,
	"suspended" boolean DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE TABLE "stripe_event" (
	"id" text PRIMARY KEY NOT NULL,
	"type" text NOT NULL,
	"received_at" timestamp with time zone DEFAULT now() NOT NULL,
	"outcome" text NOT NULL,
	"detail" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "stripe_finding" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"reason" text NOT NULL,
	"top_up_id" text,
	"amount_cents" bigint,
	"currency" text,
	"found_at" timestamp with time zone DEFAULT now() NOT NULL,
	"resolved_at" timestamp with time zone,
	"resolved_by" text,
	"resolution" text
);
--> statement-breakpoint
CREATE TABLE "stripe_payment" (
	"id" text PRIMARY KEY NOT NULL,
	"top_up_id" text,
	"refunded_cents" bigint DEFAULT 0 NOT NULL,
	"booked_refund_cents" bigint DEFAULT 0 NOT NULL,
	"fee_cents" bigint,
	"fee_at" timestamp with time zone,
	CONSTRAINT "stripe_payment_top_up_id_unique" UNIQUE("top_up_id")
);
--> statement-breakpoint
CREATE TABLE "top_up_check" (
	"top_up_id" text PRIMARY KEY NOT NULL,
	"transaction_reference" text NOT NULL,
	"first_by" text NOT NULL,
	"first_at" timestamp with time zone DEFAULT now() NOT NULL,
	"second_by" text,
	"second_at" timestamp with time zone,
	CONSTRAINT "top_up_check_transaction_reference_unique" UNIQUE("transaction_reference")
);
--> statement-breakpoint
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
CREATE TABLE "control_log" (
	"seq" bigint PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"subject" text NOT NULL,
	"payload" jsonb NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "control_pending" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "control_pending_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"kind" text NOT NULL,
	"subject" text NOT NULL,
	"payload" jsonb NOT NULL
);
--> statement-breakpoint
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
CREATE TABLE "lost_act" (
	"seq" bigint NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"kind" text NOT NULL,
	"subject" text NOT NULL,
	"outcome" text NOT NULL,
	"found_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "lost_act_seq_at_pk" PRIMARY KEY("seq","at")
);
--> statement-breakpoint
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
CREATE TABLE "company_sign_in" (
	"account_id" text PRIMARY KEY NOT NULL,
	"revision" text NOT NULL,
	"issuer" text NOT NULL,
	"client_id" text NOT NULL,
	"client_secret" text NOT NULL,
	"domain" text NOT NULL,
	"domain_token" text NOT NULL,
	"domain_verified_at" timestamp with time zone,
	"email_trusted" boolean NOT NULL,
	"role_claim" text,
	"role_values" jsonb NOT NULL,
	"default_role" text,
	"required" boolean NOT NULL,
	CONSTRAINT "company_sign_in_revision_unique" UNIQUE("revision")
);
--> statement-breakpoint
CREATE TABLE "credit_alert" (
	"account_id" text PRIMARY KEY NOT NULL,
	"threshold_nano_usd" bigint NOT NULL,
	"armed" boolean DEFAULT true NOT NULL,
	"last_sent_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "invitation" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"email" text NOT NULL,
	"role" text NOT NULL,
	"token_hash" text NOT NULL,
	"invited_by" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	CONSTRAINT "invitation_token_hash_unique" UNIQUE("token_hash"),
	CONSTRAINT "invitation_account_email" UNIQUE("account_id","email")
);
--> statement-breakpoint
CREATE TABLE "member" (
	"user_id" text NOT NULL,
	"account_id" text NOT NULL,
	"role" text NOT NULL,
	"joined_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "member_user_id_account_id_pk" PRIMARY KEY("user_id","account_id")
);
--> statement-breakpoint
CREATE TABLE "batch_end" (
	"batch_id" text PRIMARY KEY NOT NULL
);
--> statement-breakpoint
CREATE TABLE "batch_notice" (
	"batch_id" text NOT NULL,
	"channel" text NOT NULL,
	"user_id" text DEFAULT '' NOT NULL,
	"account_id" text NOT NULL,
	"state" text DEFAULT 'waiting' NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"next_at" timestamp with time zone DEFAULT now() NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"tried_at" timestamp with time zone,
	"answer" integer,
	"type" text,
	"data" jsonb,
	"problem" text,
	CONSTRAINT "batch_notice_batch_id_channel_user_id_pk" PRIMARY KEY("batch_id","channel","user_id")
);
--> statement-breakpoint
CREATE TABLE "batch_notice_setting" (
	"account_id" text PRIMARY KEY NOT NULL,
	"mail" text,
	"webhook_url" text,
	"webhook_salt" text,
	"events" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"events_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "project_member" (
	"project_id" text NOT NULL,
	"user_id" text NOT NULL,
	"account_id" text NOT NULL,
	"joined_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "project_member_project_id_user_id_pk" PRIMARY KEY("project_id","user_id")
);
--> statement-breakpoint
CREATE TABLE "auth_account" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"provider_id" text NOT NULL,
	"user_id" text NOT NULL,
	"access_token" text,
	"refresh_token" text,
	"id_token" text,
	"access_token_expires_at" timestamp with time zone,
	"refresh_token_expires_at" timestamp with time zone,
	"scope" text,
	"password" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "console_user" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"email" text NOT NULL,
	"email_verified" boolean DEFAULT false NOT NULL,
	"image" text,
	"two_factor_enabled" boolean DEFAULT false NOT NULL,
	"operator" boolean DEFAULT false NOT NULL,
	"language" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "console_user_email_unique" UNIQUE("email")
);
--> statement-breakpoint
CREATE TABLE "passkey" (
	"id" text PRIMARY KEY NOT NULL,
	"user_id" text NOT NULL,
	"name" text NOT NULL,
	"public_key" text NOT NULL,
	"counter" bigint NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"last_used_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "rate_count" (
	"key" text PRIMARY KEY NOT NULL,
	"count" integer NOT NULL,
	"started_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "rate_limit" (
	"id" text PRIMARY KEY NOT NULL,
	"key" text NOT NULL,
	"count" integer NOT NULL,
	"last_request" bigint NOT NULL,
	CONSTRAINT "rate_limit_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "session" (
	"id" text PRIMARY KEY NOT NULL,
	"token" text NOT NULL,
	"user_id" text NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"ip_address" text,
	"user_agent" text,
	"authenticated_at" timestamp with time zone,
	"company_revision" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "session_token_unique" UNIQUE("token")
);
--> statement-breakpoint
CREATE TABLE "sign_up" (
	"token_hash" text PRIMARY KEY NOT NULL,
	"email" text NOT NULL,
	"name" text NOT NULL,
	"password" text NOT NULL,
	"terms_version" text,
	"browser_hash" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "terms_acceptance" (
	"user_id" text NOT NULL,
	"version" text NOT NULL,
	"accepted_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "terms_acceptance_user_id_version_pk" PRIMARY KEY("user_id","version")
);
--> statement-breakpoint
CREATE TABLE "two_factor" (
	"id" text PRIMARY KEY NOT NULL,
	"secret" text NOT NULL,
	"backup_codes" text NOT NULL,
	"user_id" text NOT NULL,
	"verified" boolean DEFAULT true
);
--> statement-breakpoint
CREATE TABLE "verification" (
	"id" text PRIMARY KEY NOT NULL,
	"identifier" text NOT NULL,
	"value" text NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "billing_details" (
	"account_id" text PRIMARY KEY NOT NULL,
	"company" text NOT NULL,
	"address" text NOT NULL,
	"vat_id" text NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "closed_month" (
	"account_id" text NOT NULL,
	"month" date NOT NULL,
	"usage_nano_usd" bigint NOT NULL,
	"usage_to_date_nano_usd" bigint NOT NULL,
	"closing_nano_usd" bigint NOT NULL,
	"closed_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "closed_month_account_id_month_pk" PRIMARY KEY("account_id","month")
);
--> statement-breakpoint
CREATE TABLE "model_speed" (
	"hour" timestamp with time zone NOT NULL,
	"model" text NOT NULL,
	"kind" text NOT NULL,
	"bucket" smallint NOT NULL,
	"requests" bigint NOT NULL,
	CONSTRAINT "model_speed_hour_model_kind_bucket_pk" PRIMARY KEY("hour","model","kind","bucket")
);
--> statement-breakpoint
CREATE TABLE "model_cost" (
	"model" text PRIMARY KEY NOT NULL,
	"input_pico_usd" bigint NOT NULL,
	"output_pico_usd" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "replica_hour" (
	"hour" timestamp with time zone NOT NULL,
	"model" text NOT NULL,
	"replica" text NOT NULL,
	"seconds" double precision NOT NULL,
	"used_seconds" double precision NOT NULL,
	"place_seconds" double precision NOT NULL,
	"cost_nano_usd" double precision NOT NULL,
	"sampled_at" timestamp with time zone NOT NULL,
	CONSTRAINT "replica_hour_hour_model_replica_pk" PRIMARY KEY("hour","model","replica")
);
--> statement-breakpoint
CREATE TABLE "service_hour" (
	"hour" timestamp with time zone NOT NULL,
	"model" text NOT NULL,
	"code" text NOT NULL,
	"requests" bigint NOT NULL,
	"prompt_tokens" bigint NOT NULL,
	"cached_tokens" bigint NOT NULL,
	"completion_tokens" bigint NOT NULL,
	"reasoning_tokens" bigint NOT NULL,
	"charged_nano_usd" bigint NOT NULL,
	"written_off_nano_usd" bigint NOT NULL,
	"duration_ms" double precision NOT NULL,
	"first_token_ms" double precision NOT NULL,
	"first_tokens" bigint NOT NULL,
	"cost_pico_usd" numeric DEFAULT '0' NOT NULL,
	CONSTRAINT "service_hour_hour_model_code_pk" PRIMARY KEY("hour","model","code")
);
--> statement-breakpoint
CREATE TABLE "usage_cursor" (
	"id" smallint PRIMARY KEY NOT NULL,
	"horizon" bigint,
	"newest" bigint,
	"folded_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "usage_hour" (
	"account_id" text NOT NULL,
	"hour" timestamp with time zone NOT NULL,
	"key_id" text NOT NULL,
	"model" text NOT NULL,
	"class" text NOT NULL,
	"requests" bigint NOT NULL,
	"prompt_tokens" bigint NOT NULL,
	"cached_tokens" bigint NOT NULL,
	"completion_tokens" bigint NOT NULL,
	"reasoning_tokens" bigint NOT NULL,
	"charged_nano_usd" bigint NOT NULL,
	"written_off_nano_usd" bigint NOT NULL,
	"duration_ms" double precision NOT NULL,
	"first_token_ms" double precision NOT NULL,
	"first_tokens" bigint NOT NULL,
	CONSTRAINT "usage_hour_account_id_hour_key_id_model_class_pk" PRIMARY KEY("account_id","hour","key_id","model","class")
);
--> statement-breakpoint
CREATE TABLE "usage_project_hour" (
	"account_id" text NOT NULL,
	"hour" timestamp with time zone NOT NULL,
	"project_id" text NOT NULL,
	"key_id" text NOT NULL,
	"model" text NOT NULL,
	"class" text NOT NULL,
	"requests" bigint NOT NULL,
	"prompt_tokens" bigint NOT NULL,
	"cached_tokens" bigint NOT NULL,
	"completion_tokens" bigint NOT NULL,
	"reasoning_tokens" bigint NOT NULL,
	"charged_nano_usd" bigint NOT NULL,
	"written_off_nano_usd" bigint NOT NULL,
	"duration_ms" double precision NOT NULL,
	"first_token_ms" double precision NOT NULL,
	"first_tokens" bigint NOT NULL,
	CONSTRAINT "usage_project_hour_pk" PRIMARY KEY("account_id","hour","project_id","key_id","model","class")
);
--> statement-breakpoint
CREATE TABLE "usage_total" (
	"account_id" text PRIMARY KEY NOT NULL,
	"charged_nano_usd" bigint NOT NULL,
	"last_hour" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "gateway_report" (
	"instance_id" text PRIMARY KEY NOT NULL,
	"models" jsonb NOT NULL,
	"replicas" jsonb NOT NULL,
	"at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "file_space" (
	"account_id" text PRIMARY KEY NOT NULL,
	"files" integer DEFAULT 0 NOT NULL,
	"bytes" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "stored_blob" (
	"file_id" text NOT NULL,
	"name" text NOT NULL,
	"piece" integer NOT NULL,
	"bytes" "bytea" NOT NULL,
	CONSTRAINT "stored_blob_file_id_name_piece_pk" PRIMARY KEY("file_id","name","piece")
);
--> statement-breakpoint
CREATE TABLE "stored_file" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"key_id" text NOT NULL,
	"purpose" text NOT NULL,
	"filename" text NOT NULL,
	"state" text NOT NULL,
	"store" text NOT NULL,
	"bytes" bigint DEFAULT 0 NOT NULL,
	"parts" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "stored_file_part" (
	"file_id" text NOT NULL,
	"number" integer NOT NULL,
	"start" bigint NOT NULL,
	"bytes" integer NOT NULL,
	"blob" text NOT NULL,
	CONSTRAINT "stored_file_part_file_id_number_pk" PRIMARY KEY("file_id","number")
);
--> statement-breakpoint
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
CREATE TABLE "account" (
	"id" text PRIMARY KEY NOT NULL,
	"email" text NOT NULL,
	"name" text NOT NULL,
	"state" text DEFAULT 'active' NOT NULL,
	"signed_in_at" timestamp with time zone,
	"topped_up" boolean DEFAULT false NOT NULL,
	"time_zone" text DEFAULT 'UTC' NOT NULL,
	"tags" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"tokens_per_minute" integer,
	"agreements" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "account_email_unique" UNIQUE("email")
);
--> statement-breakpoint
CREATE TABLE "key_share" (
	"key_id" text NOT NULL,
	"kind" text NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"amount" integer NOT NULL,
	"seq" bigint NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "key_share_key_id_kind_instance_id_epoch_pk" PRIMARY KEY("key_id","kind","instance_id","epoch")
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
	"cap_period" text DEFAULT 'lifetime' NOT NULL,
	"project_id" text,
	"models" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"expires_at" timestamp with time zone,
	"requests_per_minute" integer,
	"concurrency_max" integer,
	"tokens_per_minute" integer,
	"reads_only" boolean DEFAULT false NOT NULL,
	"replaced_by" text,
	"last_used_at" timestamp with time zone,
	"made_by" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"revoked_at" timestamp with time zone,
	CONSTRAINT "api_key_digest_unique" UNIQUE("digest")
);
--> statement-breakpoint
CREATE TABLE "management_claim" (
	"id" text PRIMARY KEY NOT NULL,
	"request" text NOT NULL,
	"subject" text NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "management_key" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"digest" text NOT NULL,
	"prefix" text NOT NULL,
	"last_four" text NOT NULL,
	"scopes" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"expires_at" timestamp with time zone,
	"made_by" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"last_used_at" timestamp with time zone,
	"revoked_at" timestamp with time zone,
	CONSTRAINT "management_key_digest_unique" UNIQUE("digest")
);
--> statement-breakpoint
CREATE TABLE "project" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"name" text NOT NULL,
	"state" text DEFAULT 'active' NOT NULL,
	"cap_nano_usd" bigint,
	"cap_period" text DEFAULT 'lifetime' NOT NULL,
	"models" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"requests_per_minute" integer,
	"concurrency_max" integer,
	"tokens_per_minute" integer,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"archived_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "reconciliation_run" (
	"id" text PRIMARY KEY NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"ok" boolean NOT NULL,
	"by" text NOT NULL,
	"checks" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "budget" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"account_id" text NOT NULL,
	"limit_nano_usd" bigint,
	"lift_seq" bigint,
	"owner_id" text,
	"period" text,
	"period_start" date,
	"drawn_nano_usd" bigint DEFAULT 0 NOT NULL,
	"written_off_nano_usd" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "budget_drawn_not_negative" CHECK ("budget"."drawn_nano_usd" >= 0),
	CONSTRAINT "budget_account_has_limit" CHECK ("budget"."kind" <> 'account' or "budget"."limit_nano_usd" is not null)
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
	"created_at" timestamp with time zone DEFAULT books_now() NOT NULL,
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
	"recalled" bigint DEFAULT 0 NOT NULL,
	"sealed" boolean DEFAULT false NOT NULL,
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
	"at" timestamp with time zone DEFAULT books_now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "recall" (
	"budget_id" text NOT NULL,
	"ticket" bigint NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "recall_budget_id_ticket_pk" PRIMARY KEY("budget_id","ticket")
);
--> statement-breakpoint
CREATE TABLE "refused_settlement" (
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"requests" bigint NOT NULL,
	"charged_nano_usd" bigint NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "refused_settlement_instance_id_epoch_pk" PRIMARY KEY("instance_id","epoch")
);
--> statement-breakpoint
CREATE TABLE "removal" (
	"id" smallint PRIMARY KEY NOT NULL,
	"usage_before" timestamp with time zone DEFAULT '-infinity' NOT NULL,
	"usage_said_at" timestamp with time zone DEFAULT '-infinity' NOT NULL,
	"usage_frozen" timestamp with time zone DEFAULT '-infinity' NOT NULL,
	"usage_at" timestamp with time zone DEFAULT '-infinity' NOT NULL,
	"usage_id" uuid DEFAULT '00000000-0000-0000-0000-000000000000' NOT NULL,
	"op_at" timestamp with time zone DEFAULT '-infinity' NOT NULL,
	"op_id" uuid DEFAULT '00000000-0000-0000-0000-000000000000' NOT NULL,
	"op_round_at" timestamp with time zone DEFAULT '-infinity' NOT NULL
);
--> statement-breakpoint
CREATE TABLE "seal_cursor" (
	"id" smallint PRIMARY KEY NOT NULL,
	"day" date NOT NULL,
	"entries_from" timestamp with time zone NOT NULL,
	"closed_until" timestamp with time zone NOT NULL,
	"usage_at" timestamp with time zone NOT NULL,
	"usage_id" uuid NOT NULL,
	"usage_rows" bigint DEFAULT 0 NOT NULL,
	"charged_nano_usd" bigint DEFAULT 0 NOT NULL,
	"written_off_nano_usd" bigint DEFAULT 0 NOT NULL,
	"usage_hash" "bytea" NOT NULL,
	"op_at" timestamp with time zone NOT NULL,
	"op_id" uuid NOT NULL,
	"granted_nano_usd" bigint DEFAULT 0 NOT NULL,
	"returned_nano_usd" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "seal_round" (
	"id" smallint PRIMARY KEY NOT NULL,
	"day" date NOT NULL,
	"usage_at" timestamp with time zone NOT NULL,
	"usage_id" uuid NOT NULL,
	"usage_rows" bigint DEFAULT 0 NOT NULL,
	"charged_nano_usd" bigint DEFAULT 0 NOT NULL,
	"written_off_nano_usd" bigint DEFAULT 0 NOT NULL,
	"usage_hash" "bytea" NOT NULL,
	"budget_id" text DEFAULT '' NOT NULL,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "sealed_budget" (
	"budget_id" text PRIMARY KEY NOT NULL,
	"entries_nano_usd" bigint DEFAULT 0 NOT NULL,
	"spent_nano_usd" bigint DEFAULT 0 NOT NULL,
	"removed_nano_usd" bigint DEFAULT 0 NOT NULL,
	"problem" text
);
--> statement-breakpoint
CREATE TABLE "sealed_day" (
	"day" date PRIMARY KEY NOT NULL,
	"usage_rows" bigint DEFAULT 0 NOT NULL,
	"charged_nano_usd" bigint DEFAULT 0 NOT NULL,
	"written_off_nano_usd" bigint DEFAULT 0 NOT NULL,
	"usage_hash" "bytea" NOT NULL,
	"entry_rows" bigint DEFAULT 0 NOT NULL,
	"top_up_nano_usd" bigint DEFAULT 0 NOT NULL,
	"refund_nano_usd" bigint DEFAULT 0 NOT NULL,
	"adjustment_nano_usd" bigint DEFAULT 0 NOT NULL,
	"dispute_nano_usd" bigint DEFAULT 0 NOT NULL,
	"credit_note_nano_usd" bigint DEFAULT 0 NOT NULL,
	"entry_hash" "bytea" NOT NULL,
	"granted_nano_usd" bigint DEFAULT 0 NOT NULL,
	"returned_nano_usd" bigint DEFAULT 0 NOT NULL,
	"seal" "bytea" NOT NULL,
	"sealed_at" timestamp with time zone DEFAULT now() NOT NULL,
	"verified_at" timestamp with time zone,
	"problem" text,
	"archived_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "sealed_lease" (
	"budget_id" text NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"granted_nano_usd" bigint DEFAULT 0 NOT NULL,
	"returned_nano_usd" bigint DEFAULT 0 NOT NULL,
	"charged_nano_usd" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "sealed_lease_budget_id_instance_id_epoch_pk" PRIMARY KEY("budget_id","instance_id","epoch")
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
	"admitted_at" timestamp with time zone NOT NULL,
	"project_id" text
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
	"batch_id" text,
	"budgets" text[],
	"project_id" text,
	"admitted_at" timestamp with time zone NOT NULL,
	"first_token_ms" real,
	"duration_ms" real DEFAULT 0 NOT NULL,
	"settled_at" timestamp with time zone DEFAULT books_now() NOT NULL,
	CONSTRAINT "usage_charged_within_reserved" CHECK ("usage_event"."charged_nano_usd" >= 0 and "usage_event"."reserved_nano_usd" >= "usage_event"."charged_nano_usd")
);
--> statement-breakpoint
CREATE TABLE "audit_event" (
	"id" text PRIMARY KEY NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"actor" text NOT NULL,
	"action" text NOT NULL,
	"subject" text NOT NULL,
	"account_id" text,
	"ip" text,
	"detail" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "refused_request" (
	"request_id" uuid PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"key_id" text NOT NULL,
	"project_id" text,
	"model" text,
	"endpoint" text NOT NULL,
	"code" text NOT NULL,
	"status" integer NOT NULL,
	"message" text NOT NULL,
	"param" text,
	"available_nano_usd" bigint,
	"held_nano_usd" bigint,
	"required_nano_usd" bigint,
	"affordable_tokens" integer,
	"refused_at" timestamp with time zone NOT NULL,
	"repeats" integer DEFAULT 0 NOT NULL,
	"repeated_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "status_day" (
	"day" date NOT NULL,
	"subject" text NOT NULL,
	"observed" bit(1440) NOT NULL,
	"serving" bit(1440) NOT NULL,
	"operational" bit(1440) NOT NULL,
	CONSTRAINT "status_day_day_subject_pk" PRIMARY KEY("day","subject")
);
--> statement-breakpoint
ALTER TABLE "company_sign_in" ADD CONSTRAINT "company_sign_in_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "credit_alert" ADD CONSTRAINT "credit_alert_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "invitation" ADD CONSTRAINT "invitation_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "member" ADD CONSTRAINT "member_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "member" ADD CONSTRAINT "member_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "batch_notice_setting" ADD CONSTRAINT "batch_notice_setting_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "project_member" ADD CONSTRAINT "project_member_project_id_project_id_fk" FOREIGN KEY ("project_id") REFERENCES "project"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "project_member" ADD CONSTRAINT "project_member_user_id_account_id_member_user_id_account_id_fk" FOREIGN KEY ("user_id","account_id") REFERENCES "member"("user_id","account_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "auth_account" ADD CONSTRAINT "auth_account_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "passkey" ADD CONSTRAINT "passkey_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "session" ADD CONSTRAINT "session_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "terms_acceptance" ADD CONSTRAINT "terms_acceptance_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "two_factor" ADD CONSTRAINT "two_factor_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "billing_details" ADD CONSTRAINT "billing_details_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "closed_month" ADD CONSTRAINT "closed_month_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_project_id_project_id_fk" FOREIGN KEY ("project_id") REFERENCES "project"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "project" ADD CONSTRAINT "project_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "batch_account" ON "batch" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "batch_open" ON "batch" USING btree ("id") WHERE "batch"."state" in ('validating', 'in_progress', 'finalizing', 'cancelling');--> statement-breakpoint
CREATE INDEX "promotion_account" ON "promotion" USING btree ("account_id","spent_nano_usd","seq");--> statement-breakpoint
CREATE INDEX "promotion_ending" ON "promotion" USING btree ("last_day") WHERE "promotion"."left_nano_usd" > 0;--> statement-breakpoint
CREATE INDEX "stripe_payment_fee" ON "stripe_payment" USING btree ("fee_at") WHERE "stripe_payment"."fee_at" is not null;--> statement-breakpoint
CREATE INDEX "credit_adjustment_state" ON "credit_adjustment" USING btree ("state","id");--> statement-breakpoint
CREATE INDEX "credit_adjustment_first" ON "credit_adjustment" USING btree ("first_by","first_at");--> statement-breakpoint
CREATE INDEX "auto_top_up_look" ON "auto_top_up" USING btree ("look_at") WHERE "auto_top_up"."state" = 'on' and "auto_top_up"."look_at" is not null;--> statement-breakpoint
CREATE INDEX "auto_top_up_tell" ON "auto_top_up" USING btree ("changed_at") WHERE "auto_top_up"."tell" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "auto_top_up_attempt_open" ON "auto_top_up_attempt" USING btree ("account_id") WHERE "auto_top_up_attempt"."state" in ('begun', 'sent', 'unknown', 'needs_authentication');--> statement-breakpoint
CREATE INDEX "auto_top_up_attempt_look" ON "auto_top_up_attempt" USING btree ("look_at") WHERE "auto_top_up_attempt"."state" in ('begun', 'sent', 'unknown', 'needs_authentication');--> statement-breakpoint
CREATE INDEX "auto_top_up_attempt_account" ON "auto_top_up_attempt" USING btree ("account_id","begun_at");--> statement-breakpoint
CREATE INDEX "card_setup_look" ON "card_setup" USING btree ("look_at") WHERE "card_setup"."state" = 'open';--> statement-breakpoint
CREATE INDEX "card_setup_account" ON "card_setup" USING btree ("account_id") WHERE "card_setup"."state" = 'open';--> statement-breakpoint
CREATE INDEX "stripe_dispute_payment" ON "stripe_dispute" USING btree ("payment_id");--> statement-breakpoint
CREATE INDEX "stripe_dispute_owed" ON "stripe_dispute" USING btree ("payment_id") WHERE ("stripe_dispute"."booked" = 'nothing' and "stripe_dispute"."state" <> 'won') or ("stripe_dispute"."booked" = 'taken' and "stripe_dispute"."state" = 'won');--> statement-breakpoint
CREATE INDEX "stripe_finding_open" ON "stripe_finding" USING btree ("found_at") WHERE "stripe_finding"."resolved_at" is null;--> statement-breakpoint
CREATE INDEX "stripe_payment_owed" ON "stripe_payment" USING btree ("id") WHERE "stripe_payment"."booked_refund_cents" < "stripe_payment"."refunded_cents";--> statement-breakpoint
CREATE UNIQUE INDEX "top_up_check_transaction" ON "top_up_check" USING btree (upper(regexp_replace("transaction_reference", '[^A-Za-z0-9]', '', 'g')));--> statement-breakpoint
CREATE INDEX "top_up_account" ON "top_up" USING btree ("account_id","created_at");--> statement-breakpoint
CREATE INDEX "top_up_state" ON "top_up" USING btree ("state","id");--> statement-breakpoint
CREATE INDEX "top_up_booked" ON "top_up" USING btree ("decided_at") WHERE "top_up"."state" in ('confirmed', 'refunded', 'disputed');--> statement-breakpoint
CREATE UNIQUE INDEX "top_up_same_reference" ON "top_up" USING btree (upper(regexp_replace("reference", '[[:space:]]', '', 'g')));--> statement-breakpoint
CREATE INDEX "lost_act_found" ON "lost_act" USING btree ("found_at");--> statement-breakpoint
CREATE INDEX "instance_beat_unfinished" ON "instance_beat" USING btree ("state") WHERE "instance_beat"."state" <> 'left';--> statement-breakpoint
CREATE INDEX "alert_mark_at" ON "alert_mark" USING btree ("at");--> statement-breakpoint
CREATE INDEX "alert_touched_account" ON "alert_touched" USING btree ("account_id");--> statement-breakpoint
CREATE UNIQUE INDEX "company_sign_in_domain" ON "company_sign_in" USING btree ("domain") WHERE "company_sign_in"."domain_verified_at" is not null;--> statement-breakpoint
CREATE INDEX "member_account" ON "member" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "batch_notice_due" ON "batch_notice" USING btree ("channel","next_at") WHERE "batch_notice"."state" = 'waiting';--> statement-breakpoint
CREATE INDEX "batch_notice_lane" ON "batch_notice" USING btree ("channel",(case when "type" is null then 1 when "type" = 'model.retiring' then 2 else 0 end),"next_at") WHERE "batch_notice"."state" = 'waiting';--> statement-breakpoint
CREATE INDEX "batch_notice_account" ON "batch_notice" USING btree ("account_id","batch_id");--> statement-breakpoint
CREATE INDEX "batch_notice_created" ON "batch_notice" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "project_member_user" ON "project_member" USING btree ("user_id","account_id");--> statement-breakpoint
CREATE INDEX "auth_account_user" ON "auth_account" USING btree ("user_id");--> statement-breakpoint
CREATE UNIQUE INDEX "auth_account_company" ON "auth_account" USING btree ("provider_id","account_id") WHERE "auth_account"."provider_id" like 'company:%';--> statement-breakpoint
CREATE UNIQUE INDEX "auth_account_company_user" ON "auth_account" USING btree ("provider_id","user_id") WHERE "auth_account"."provider_id" like 'company:%';--> statement-breakpoint
CREATE INDEX "passkey_user" ON "passkey" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "rate_count_started" ON "rate_count" USING btree ("started_at");--> statement-breakpoint
CREATE INDEX "session_user" ON "session" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "sign_up_email" ON "sign_up" USING btree ("email","created_at");--> statement-breakpoint
CREATE INDEX "sign_up_expiry" ON "sign_up" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "two_factor_user" ON "two_factor" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "verification_identifier" ON "verification" USING btree ("identifier");--> statement-breakpoint
CREATE INDEX "usage_hour_hour" ON "usage_hour" USING btree ("hour");--> statement-breakpoint
CREATE INDEX "usage_hour_model" ON "usage_hour" USING btree ("account_id","model","class","hour");--> statement-breakpoint
CREATE INDEX "usage_hour_key" ON "usage_hour" USING btree ("key_id","model","class","hour");--> statement-breakpoint
CREATE INDEX "usage_project_hour_model" ON "usage_project_hour" USING btree ("project_id","model","class","hour");--> statement-breakpoint
CREATE INDEX "usage_project_hour_key" ON "usage_project_hour" USING btree ("key_id","project_id","model","class","hour");--> statement-breakpoint
CREATE INDEX "stored_file_account" ON "stored_file" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "stored_file_expires" ON "stored_file" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "idempotency_claim_expires" ON "idempotency_claim" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "idempotency_claim_answered" ON "idempotency_claim" USING btree ("account_id","claimed_at") WHERE "idempotency_claim"."state" = 'answered';--> statement-breakpoint
CREATE INDEX "api_key_account" ON "api_key" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "api_key_expires" ON "api_key" USING btree ("expires_at") WHERE "api_key"."state" = 'active' and "api_key"."expires_at" is not null;--> statement-breakpoint
CREATE INDEX "api_key_project" ON "api_key" USING btree ("project_id") WHERE "api_key"."project_id" is not null;--> statement-breakpoint
CREATE INDEX "project_account" ON "project" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "reconciliation_run_broken" ON "reconciliation_run" USING btree ("ok","id");--> statement-breakpoint
CREATE INDEX "budget_account" ON "budget" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "budget_period" ON "budget" USING btree ("owner_id","period_start") WHERE "budget"."owner_id" is not null;--> statement-breakpoint
CREATE INDEX "ledger_entry_account" ON "ledger_entry" USING btree ("account_id","created_at");--> statement-breakpoint
CREATE INDEX "ledger_entry_created" ON "ledger_entry" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "lease_unsealed" ON "lease" USING btree ("instance_id","epoch") WHERE not "lease"."sealed";--> statement-breakpoint
CREATE INDEX "lease_unsealed_budget" ON "lease" USING btree ("budget_id") WHERE not "lease"."sealed";--> statement-breakpoint
CREATE INDEX "lease_sealed" ON "lease" USING btree ("instance_id","epoch") WHERE "lease"."sealed";--> statement-breakpoint
CREATE INDEX "lease_instance_open" ON "lease" USING btree ("instance_id","epoch") WHERE "lease"."state" = 'open';--> statement-breakpoint
CREATE INDEX "lease_open" ON "lease" USING btree ("budget_id") WHERE "lease"."state" = 'open';--> statement-breakpoint
CREATE INDEX "lease_op_lease" ON "lease_op" USING btree ("budget_id","instance_id","epoch");--> statement-breakpoint
CREATE INDEX "lease_op_at" ON "lease_op" USING btree ("at");--> statement-breakpoint
CREATE INDEX "recall_at" ON "recall" USING btree ("at");--> statement-breakpoint
CREATE INDEX "reservation_account" ON "reservation" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "reservation_instance" ON "reservation" USING btree ("instance_id","epoch");--> statement-breakpoint
CREATE INDEX "usage_event_account" ON "usage_event" USING btree ("account_id","admitted_at");--> statement-breakpoint
CREATE INDEX "usage_event_key" ON "usage_event" USING btree ("key_id","admitted_at");--> statement-breakpoint
CREATE INDEX "usage_event_settled" ON "usage_event" USING btree ("settled_at");--> statement-breakpoint
CREATE INDEX "usage_event_batch" ON "usage_event" USING btree ("batch_id","admitted_at","request_id") WHERE "usage_event"."batch_id" is not null;--> statement-breakpoint
CREATE INDEX "usage_event_project" ON "usage_event" USING btree ("project_id","admitted_at","request_id") WHERE "usage_event"."project_id" is not null;--> statement-breakpoint
CREATE INDEX "audit_event_subject" ON "audit_event" USING btree ("subject","id");--> statement-breakpoint
CREATE INDEX "audit_event_account" ON "audit_event" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "audit_event_actor" ON "audit_event" USING btree ("actor","id");--> statement-breakpoint
CREATE INDEX "usage_total_last" ON "usage_total" USING btree ("last_hour");--> statement-breakpoint
CREATE INDEX "account_created" ON "account" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "refused_request_account" ON "refused_request" USING btree ("account_id","refused_at","request_id");--> statement-breakpoint
CREATE INDEX "refused_request_key" ON "refused_request" USING btree ("key_id","refused_at","request_id");--> statement-breakpoint
CREATE INDEX "refused_request_model" ON "refused_request" USING btree ("account_id","model","refused_at","request_id");--> statement-breakpoint
CREATE INDEX "refused_request_project" ON "refused_request" USING btree ("project_id","refused_at","request_id") WHERE "refused_request"."project_id" is not null;--> statement-breakpoint
CREATE INDEX "refused_request_refused" ON "refused_request" USING btree (("refused_at" at time zone 'UTC'));
--> statement-breakpoint
-- All following statements are written by hand: drizzle-kit has no storage parameters, views, functions and triggers.

-- Leaves free space on the pages of rows that are updated often, so that an update need not change the indexes.
ALTER TABLE "lease" SET (fillfactor = 60);
--> statement-breakpoint
ALTER TABLE "budget" SET (fillfactor = 70);
--> statement-breakpoint
ALTER TABLE "api_key" SET (fillfactor = 70);
--> statement-breakpoint
ALTER TABLE "status_day" SET (fillfactor = 50);
--> statement-breakpoint
-- Encrypted bytes do not compress, so Postgres need not try.
ALTER TABLE "stored_blob" ALTER COLUMN "bytes" SET STORAGE EXTERNAL;
--> statement-breakpoint
CREATE VIEW "instance_now" AS
	SELECT b.* FROM "instance_beat" b
	WHERE NOT EXISTS (SELECT 1 FROM "instance_beat" n WHERE n."id" = b."id" AND n."epoch" = b."epoch" AND n."beat" > b."beat");
--> statement-breakpoint
-- Appends the entries of a transaction with several statements to the control log when it commits.
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
-- A late settlement on a sealed lease unseals the lease for the checks of the books. A trigger, so that every version does it.
CREATE FUNCTION lease_unseal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE sealed_budget b SET spent_nano_usd = b.spent_nano_usd - old.settled_nano_usd WHERE b.budget_id = old.budget_id;
	INSERT INTO sealed_lease AS x (budget_id, instance_id, epoch, granted_nano_usd, returned_nano_usd, charged_nano_usd)
		VALUES (old.budget_id, old.instance_id, old.epoch, old.granted_nano_usd, old.returned_nano_usd, old.settled_nano_usd)
		ON CONFLICT (budget_id, instance_id, epoch) DO UPDATE SET granted_nano_usd = x.granted_nano_usd + excluded.granted_nano_usd,
			returned_nano_usd = x.returned_nano_usd + excluded.returned_nano_usd, charged_nano_usd = x.charged_nano_usd + excluded.charged_nano_usd;
	new.sealed := false;
	RETURN new;
END $$;
--> statement-breakpoint
CREATE TRIGGER lease_unseal BEFORE UPDATE ON lease FOR EACH ROW
	WHEN (old.sealed AND (old.granted_nano_usd, old.returned_nano_usd, old.settled_nano_usd)
		IS DISTINCT FROM (new.granted_nano_usd, new.returned_nano_usd, new.settled_nano_usd))
	EXECUTE FUNCTION lease_unseal();
--> statement-breakpoint
INSERT INTO "removal" ("id") VALUES (1);
--> statement-breakpoint
-- Keeps the totals when the hourly sums change. Triggers, so that every version does it. The writer has locked usage_cursor.
CREATE FUNCTION usage_total_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF tg_op <> 'DELETE' THEN
		INSERT INTO usage_total AS t (account_id, charged_nano_usd, last_hour)
			SELECT n.account_id, sum(n.charged_nano_usd), max(n.hour) FROM new_hours n GROUP BY 1
			ON CONFLICT (account_id) DO UPDATE SET charged_nano_usd = t.charged_nano_usd + excluded.charged_nano_usd,
				last_hour = greatest(t.last_hour, excluded.last_hour);
	END IF;
	IF tg_op <> 'INSERT' THEN
		UPDATE usage_total t SET charged_nano_usd = t.charged_nano_usd - o.charged
			FROM (SELECT h.account_id, sum(h.charged_nano_usd) AS charged FROM old_hours h GROUP BY 1) o WHERE t.account_id = o.account_id;
	END IF;
	RETURN null;
END $$;
--> statement-breakpoint
CREATE TRIGGER usage_total_insert AFTER INSERT ON usage_hour REFERENCING NEW TABLE AS new_hours
	FOR EACH STATEMENT EXECUTE FUNCTION usage_total_keep();
--> statement-breakpoint
CREATE TRIGGER usage_total_update AFTER UPDATE ON usage_hour REFERENCING NEW TABLE AS new_hours OLD TABLE AS old_hours
	FOR EACH STATEMENT EXECUTE FUNCTION usage_total_keep();
--> statement-breakpoint
CREATE TRIGGER usage_total_delete AFTER DELETE ON usage_hour REFERENCING OLD TABLE AS old_hours
	FOR EACH STATEMENT EXECUTE FUNCTION usage_total_keep();
--> statement-breakpoint
-- Sums refusals, because the sums are kept longer than the rows. A gateway writes the rows of one code and hour once a
-- second, while no request waits.
CREATE FUNCTION refused_sum() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO service_hour AS h (hour, model, code, requests, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens,
			charged_nano_usd, written_off_nano_usd, duration_ms, first_token_ms, first_tokens)
		SELECT date_trunc('hour', n.refused_at, 'UTC'), '', n.code, sum(1 + n.repeats), 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM new_rows n GROUP BY 1, 3 ORDER BY 1, 3
		ON CONFLICT (hour, model, code) DO UPDATE SET requests = h.requests + excluded.requests;
	RETURN null;
END $$;
--> statement-breakpoint
CREATE FUNCTION refused_sum_more() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE service_hour h SET requests = h.requests + r.more FROM (
		SELECT date_trunc('hour', n.refused_at, 'UTC') AS hour, n.code, sum(n.repeats - o.repeats) AS more
			FROM new_rows n JOIN old_rows o USING (request_id) GROUP BY 1, 2 ORDER BY 1, 2) r
		WHERE h.hour = r.hour AND h.model = '' AND h.code = r.code;
	RETURN null;
END $$;
--> statement-breakpoint
CREATE TRIGGER refused_sum_insert AFTER INSERT ON refused_request REFERENCING NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION refused_sum();
--> statement-breakpoint
CREATE TRIGGER refused_sum_update AFTER UPDATE ON refused_request REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows
	FOR EACH STATEMENT EXECUTE FUNCTION refused_sum_more();
--> statement-breakpoint
-- Marks accounts whose usage or credit changed, for the check of alerts. Triggers, so that every version does it. They never
-- wait: an existing row stays locked until this transaction ends, so that its reader sees what this transaction wrote; if
-- the row is being deleted, another row is written.
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
-- Marks accounts for automatic top-ups. Adds a row for each change, so that no writer waits for another writer's row.
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
-- An automatic payment that waited for its owner is checked again as soon as its top-up is decided.
CREATE FUNCTION auto_top_up_wake() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE auto_top_up_attempt SET look_at = now() WHERE top_up_id = new.id AND state = 'needs_authentication';
	RETURN null;
END $$;
--> statement-breakpoint
CREATE TRIGGER auto_top_up_wake AFTER UPDATE OF state ON top_up
	FOR EACH ROW WHEN (new.method = 'card' AND new.state <> 'pending' AND old.state = 'pending') EXECUTE FUNCTION auto_top_up_wake();

CREATE TABLE "stripe_checkout" (
	"id" text PRIMARY KEY NOT NULL,
	"top_up_id" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "stripe_checkout_top_up_id_unique" UNIQUE("top_up_id")
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
CREATE TABLE "stripe_payment" (
	"id" text PRIMARY KEY NOT NULL,
	"top_up_id" text,
	"refunded_cents" bigint DEFAULT 0 NOT NULL,
	"booked_refund_cents" bigint DEFAULT 0 NOT NULL,
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
CREATE TABLE "reconciliation_run" (
	"id" text PRIMARY KEY NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"ok" boolean NOT NULL,
	"by" text NOT NULL,
	"checks" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "usage_cursor" (
	"id" smallint PRIMARY KEY NOT NULL,
	"horizon" bigint,
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
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "console_user_email_unique" UNIQUE("email")
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
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "session_token_unique" UNIQUE("token")
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
ALTER TABLE "credit_alert" ADD CONSTRAINT "credit_alert_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "invitation" ADD CONSTRAINT "invitation_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "member" ADD CONSTRAINT "member_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "member" ADD CONSTRAINT "member_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "auth_account" ADD CONSTRAINT "auth_account_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "session" ADD CONSTRAINT "session_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "two_factor" ADD CONSTRAINT "two_factor_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "stripe_dispute_payment" ON "stripe_dispute" USING btree ("payment_id");--> statement-breakpoint
CREATE INDEX "audit_event_subject" ON "audit_event" USING btree ("subject","id");--> statement-breakpoint
CREATE INDEX "audit_event_account" ON "audit_event" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "audit_event_actor" ON "audit_event" USING btree ("actor","id");--> statement-breakpoint
CREATE INDEX "member_account" ON "member" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "reconciliation_run_broken" ON "reconciliation_run" USING btree ("ok","id");--> statement-breakpoint
CREATE INDEX "auth_account_user" ON "auth_account" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "session_user" ON "session" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "two_factor_user" ON "two_factor" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "verification_identifier" ON "verification" USING btree ("identifier");--> statement-breakpoint
CREATE INDEX "usage_event_settled" ON "usage_event" USING btree ("settled_at");
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
	"problem" text,
	CONSTRAINT "batch_notice_batch_id_channel_user_id_pk" PRIMARY KEY("batch_id","channel","user_id")
);
--> statement-breakpoint
CREATE TABLE "batch_notice_setting" (
	"account_id" text PRIMARY KEY NOT NULL,
	"mail" text,
	"webhook_url" text,
	"webhook_salt" text
);
--> statement-breakpoint
ALTER TABLE "batch_notice_setting" ADD CONSTRAINT "batch_notice_setting_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "batch_notice_due" ON "batch_notice" USING btree ("channel","next_at") WHERE "batch_notice"."state" = 'waiting';--> statement-breakpoint
CREATE INDEX "batch_notice_account" ON "batch_notice" USING btree ("account_id","batch_id");--> statement-breakpoint
CREATE INDEX "batch_notice_created" ON "batch_notice" USING btree ("created_at");
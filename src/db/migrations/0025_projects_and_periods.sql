CREATE TABLE "project_member" (
	"project_id" text NOT NULL,
	"user_id" text NOT NULL,
	"account_id" text NOT NULL,
	"joined_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "project_member_project_id_user_id_pk" PRIMARY KEY("project_id","user_id")
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
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"archived_at" timestamp with time zone
);
--> statement-breakpoint
ALTER TABLE "budget" DROP CONSTRAINT "budget_account_has_limit";--> statement-breakpoint
ALTER TABLE "account" ADD COLUMN "time_zone" text DEFAULT 'UTC' NOT NULL;--> statement-breakpoint
ALTER TABLE "api_key" ADD COLUMN "cap_period" text DEFAULT 'lifetime' NOT NULL;--> statement-breakpoint
ALTER TABLE "api_key" ADD COLUMN "project_id" text;--> statement-breakpoint
ALTER TABLE "budget" ADD COLUMN "lift_seq" bigint;--> statement-breakpoint
ALTER TABLE "budget" ADD COLUMN "owner_id" text;--> statement-breakpoint
ALTER TABLE "budget" ADD COLUMN "period" text;--> statement-breakpoint
ALTER TABLE "budget" ADD COLUMN "period_start" date;--> statement-breakpoint
ALTER TABLE "usage_event" ADD COLUMN "budgets" text[];--> statement-breakpoint
ALTER TABLE "usage_event" ADD COLUMN "project_id" text;--> statement-breakpoint
ALTER TABLE "project_member" ADD CONSTRAINT "project_member_project_id_project_id_fk" FOREIGN KEY ("project_id") REFERENCES "project"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "project_member" ADD CONSTRAINT "project_member_user_id_account_id_member_user_id_account_id_fk" FOREIGN KEY ("user_id","account_id") REFERENCES "member"("user_id","account_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "project" ADD CONSTRAINT "project_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "project_member_user" ON "project_member" USING btree ("user_id","account_id");--> statement-breakpoint
CREATE INDEX "project_account" ON "project" USING btree ("account_id");--> statement-breakpoint
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_project_id_project_id_fk" FOREIGN KEY ("project_id") REFERENCES "project"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "api_key_project" ON "api_key" USING btree ("project_id") WHERE "api_key"."project_id" is not null;--> statement-breakpoint
CREATE INDEX "budget_period" ON "budget" USING btree ("owner_id","period_start") WHERE "budget"."owner_id" is not null;--> statement-breakpoint
ALTER TABLE "budget" ADD CONSTRAINT "budget_account_has_limit" CHECK ("budget"."kind" <> 'account' or "budget"."limit_nano_usd" is not null);
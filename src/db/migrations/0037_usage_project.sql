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
ALTER TABLE "refused_request" ADD COLUMN "project_id" text;--> statement-breakpoint
CREATE INDEX "usage_project_hour_model" ON "usage_project_hour" USING btree ("project_id","model","class","hour");--> statement-breakpoint
CREATE INDEX "usage_project_hour_key" ON "usage_project_hour" USING btree ("key_id","project_id","model","class","hour");--> statement-breakpoint
CREATE INDEX "usage_event_project" ON "usage_event" USING btree ("project_id","admitted_at","request_id") WHERE "usage_event"."project_id" is not null;--> statement-breakpoint
CREATE INDEX "refused_request_project" ON "refused_request" USING btree ("project_id","refused_at","request_id") WHERE "refused_request"."project_id" is not null;
--> statement-breakpoint
-- What was used in projects so far is in sums that do not tell it apart: they are made anew. No release had projects.
UPDATE "usage_cursor" SET "horizon" = NULL WHERE EXISTS (SELECT 1 FROM "project");

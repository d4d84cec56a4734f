CREATE TABLE "refused_request" (
	"request_id" uuid PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"key_id" text NOT NULL,
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
CREATE INDEX "refused_request_account" ON "refused_request" USING btree ("account_id","refused_at","request_id");--> statement-breakpoint
CREATE INDEX "refused_request_key" ON "refused_request" USING btree ("key_id","refused_at","request_id");--> statement-breakpoint
CREATE INDEX "refused_request_model" ON "refused_request" USING btree ("account_id","model","refused_at","request_id");--> statement-breakpoint
CREATE INDEX "refused_request_refused" ON "refused_request" USING btree ("refused_at");
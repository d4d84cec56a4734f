CREATE TABLE "stripe_clearing" (
	"day" date PRIMARY KEY NOT NULL,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	"finished_at" timestamp with time zone,
	"outcome" jsonb
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
CREATE INDEX "stripe_finding_open" ON "stripe_finding" USING btree ("found_at") WHERE "stripe_finding"."resolved_at" is null;
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
ALTER TABLE "sealed_budget" ADD COLUMN "removed_nano_usd" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "sealed_day" ADD COLUMN "archived_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "lease_unsealed_budget" ON "lease" USING btree ("budget_id") WHERE not "lease"."sealed";--> statement-breakpoint
CREATE INDEX "lease_sealed" ON "lease" USING btree ("instance_id","epoch") WHERE "lease"."sealed";
--> statement-breakpoint
INSERT INTO "removal" ("id") VALUES (1);
--> statement-breakpoint
-- What a former version meets that must not run any more; `removal_ready` and breaking migrations put it there.
CREATE OR REPLACE FUNCTION refuse_version_0_1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'The database belongs to a newer version of Tollgate, with which this one cannot work.';
END $$;

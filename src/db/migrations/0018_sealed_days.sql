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
	"problem" text
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
CREATE TABLE "sealing" (
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
ALTER TABLE "lease" ADD COLUMN "sealed" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX "top_up_booked" ON "top_up" USING btree ("decided_at") WHERE "top_up"."state" in ('confirmed', 'refunded', 'disputed');--> statement-breakpoint
CREATE INDEX "ledger_entry_created" ON "ledger_entry" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "lease_unsealed" ON "lease" USING btree ("instance_id","epoch") WHERE not "lease"."sealed";--> statement-breakpoint
CREATE INDEX "lease_op_at" ON "lease_op" USING btree ("at");
--> statement-breakpoint
-- The moment at which something is recorded: now, but never in a day that is closed, whatever the server's clock says. Who
-- writes many rows at once asks once.
create function books_now() returns timestamptz language sql stable as $$
  select greatest(now(), (select s.closed_until from sealing s where s.id = 1))
$$;
--> statement-breakpoint
alter table usage_event alter column settled_at set default books_now();
--> statement-breakpoint
alter table ledger_entry alter column created_at set default books_now();
--> statement-breakpoint
alter table lease_op alter column at set default books_now();
--> statement-breakpoint
-- A settlement that comes after all, by whatever version it is recorded, opens the lease again for the checks.
create function lease_unseal() returns trigger language plpgsql as $$
begin
  update sealed_budget b set spent_nano_usd = b.spent_nano_usd - old.settled_nano_usd where b.budget_id = old.budget_id;
  insert into sealed_lease as x (budget_id, instance_id, epoch, granted_nano_usd, returned_nano_usd, charged_nano_usd)
    values (old.budget_id, old.instance_id, old.epoch, old.granted_nano_usd, old.returned_nano_usd, old.settled_nano_usd)
    on conflict (budget_id, instance_id, epoch) do update set granted_nano_usd = x.granted_nano_usd + excluded.granted_nano_usd,
      returned_nano_usd = x.returned_nano_usd + excluded.returned_nano_usd, charged_nano_usd = x.charged_nano_usd + excluded.charged_nano_usd;
  new.sealed := false;
  return new;
end $$;
--> statement-breakpoint
create trigger lease_unseal before update on lease for each row
  when (old.sealed and (old.granted_nano_usd, old.returned_nano_usd, old.settled_nano_usd)
    is distinct from (new.granted_nano_usd, new.returned_nano_usd, new.settled_nano_usd))
  execute function lease_unseal();

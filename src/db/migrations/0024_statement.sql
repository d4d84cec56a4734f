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
ALTER TABLE "billing_details" ADD CONSTRAINT "billing_details_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "closed_month" ADD CONSTRAINT "closed_month_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;
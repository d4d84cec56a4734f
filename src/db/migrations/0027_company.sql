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
ALTER TABLE "session" ADD COLUMN "company_revision" text;--> statement-breakpoint
ALTER TABLE "company_sign_in" ADD CONSTRAINT "company_sign_in_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "company_sign_in_domain" ON "company_sign_in" USING btree ("domain") WHERE "company_sign_in"."domain_verified_at" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "auth_account_company" ON "auth_account" USING btree ("provider_id","account_id") WHERE "auth_account"."provider_id" like 'company:%';--> statement-breakpoint
CREATE UNIQUE INDEX "auth_account_company_user" ON "auth_account" USING btree ("provider_id","user_id") WHERE "auth_account"."provider_id" like 'company:%';
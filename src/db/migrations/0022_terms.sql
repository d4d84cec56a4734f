CREATE TABLE "terms_acceptance" (
	"user_id" text NOT NULL,
	"version" text NOT NULL,
	"accepted_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "terms_acceptance_user_id_version_pk" PRIMARY KEY("user_id","version")
);
--> statement-breakpoint
ALTER TABLE "sign_up" ADD COLUMN "terms_version" text;--> statement-breakpoint
ALTER TABLE "terms_acceptance" ADD CONSTRAINT "terms_acceptance_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;
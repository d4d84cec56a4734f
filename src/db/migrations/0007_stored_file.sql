CREATE TABLE "file_space" (
	"account_id" text PRIMARY KEY NOT NULL,
	"files" integer DEFAULT 0 NOT NULL,
	"bytes" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "stored_blob" (
	"file_id" text NOT NULL,
	"name" text NOT NULL,
	"piece" integer NOT NULL,
	"bytes" "bytea" NOT NULL,
	CONSTRAINT "stored_blob_file_id_name_piece_pk" PRIMARY KEY("file_id","name","piece")
);
--> statement-breakpoint
CREATE TABLE "stored_file" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"key_id" text NOT NULL,
	"purpose" text NOT NULL,
	"filename" text NOT NULL,
	"state" text NOT NULL,
	"store" text NOT NULL,
	"bytes" bigint DEFAULT 0 NOT NULL,
	"parts" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "stored_file_part" (
	"file_id" text NOT NULL,
	"number" integer NOT NULL,
	"start" bigint NOT NULL,
	"bytes" integer NOT NULL,
	"blob" text NOT NULL,
	CONSTRAINT "stored_file_part_file_id_number_pk" PRIMARY KEY("file_id","number")
);
--> statement-breakpoint
CREATE INDEX "stored_file_account" ON "stored_file" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "stored_file_expires" ON "stored_file" USING btree ("expires_at");
--> statement-breakpoint
-- They are encrypted, and so nothing is gained by packing them.
ALTER TABLE "stored_blob" ALTER COLUMN "bytes" SET STORAGE EXTERNAL;

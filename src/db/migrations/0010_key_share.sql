CREATE TABLE "key_share" (
	"key_id" text NOT NULL,
	"kind" text NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"amount" integer NOT NULL,
	"seq" bigint NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "key_share_key_id_kind_instance_id_epoch_pk" PRIMARY KEY("key_id","kind","instance_id","epoch")
);

CREATE TABLE "model_speed" (
	"hour" timestamp with time zone NOT NULL,
	"model" text NOT NULL,
	"kind" text NOT NULL,
	"bucket" smallint NOT NULL,
	"requests" bigint NOT NULL,
	CONSTRAINT "model_speed_hour_model_kind_bucket_pk" PRIMARY KEY("hour","model","kind","bucket")
);

CREATE TABLE "gateway_report" (
	"instance_id" text PRIMARY KEY NOT NULL,
	"models" jsonb NOT NULL,
	"replicas" jsonb NOT NULL,
	"at" timestamp with time zone NOT NULL
);

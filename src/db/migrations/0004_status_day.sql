CREATE TABLE "status_day" (
	"day" date NOT NULL,
	"subject" text NOT NULL,
	"observed" bit(1440) NOT NULL,
	"serving" bit(1440) NOT NULL,
	"operational" bit(1440) NOT NULL,
	CONSTRAINT "status_day_day_subject_pk" PRIMARY KEY("day","subject")
);
--> statement-breakpoint
-- The rows of the day are updated every minute: room on their page, so that an update need not touch the index.
ALTER TABLE "status_day" SET (fillfactor = 50);

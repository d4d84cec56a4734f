-- Rows that are updated again and again keep room on their page, so that an update need not touch the indexes.
ALTER TABLE "lease" SET (fillfactor = 60);
--> statement-breakpoint
ALTER TABLE "budget" SET (fillfactor = 70);
--> statement-breakpoint
ALTER TABLE "api_key" SET (fillfactor = 70);
--> statement-breakpoint
ALTER TABLE "instance" SET (fillfactor = 50);

ALTER TABLE "console_user" ADD COLUMN "language" text;

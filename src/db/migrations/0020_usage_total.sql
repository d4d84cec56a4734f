CREATE TABLE "usage_total" (
	"account_id" text PRIMARY KEY NOT NULL,
	"charged_nano_usd" bigint NOT NULL
);
--> statement-breakpoint
CREATE INDEX "top_up_state" ON "top_up" USING btree ("state","id");--> statement-breakpoint
CREATE INDEX "usage_hour_hour" ON "usage_hour" USING btree ("hour");
--> statement-breakpoint
-- Triggers, so that whichever version sums, nets or throws sums away keeps the totals too. Who does holds the row of
-- usage_cursor.
CREATE FUNCTION usage_total_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF tg_op <> 'DELETE' THEN
		INSERT INTO usage_total AS t (account_id, charged_nano_usd)
			SELECT n.account_id, sum(n.charged_nano_usd) FROM new_hours n GROUP BY 1
			ON CONFLICT (account_id) DO UPDATE SET charged_nano_usd = t.charged_nano_usd + excluded.charged_nano_usd;
	END IF;
	IF tg_op <> 'INSERT' THEN
		UPDATE usage_total t SET charged_nano_usd = t.charged_nano_usd - o.charged
			FROM (SELECT h.account_id, sum(h.charged_nano_usd) AS charged FROM old_hours h GROUP BY 1) o WHERE t.account_id = o.account_id;
	END IF;
	RETURN null;
END $$;
--> statement-breakpoint
CREATE TRIGGER usage_total_insert AFTER INSERT ON usage_hour REFERENCING NEW TABLE AS new_hours
	FOR EACH STATEMENT EXECUTE FUNCTION usage_total_keep();
--> statement-breakpoint
CREATE TRIGGER usage_total_update AFTER UPDATE ON usage_hour REFERENCING NEW TABLE AS new_hours OLD TABLE AS old_hours
	FOR EACH STATEMENT EXECUTE FUNCTION usage_total_keep();
--> statement-breakpoint
CREATE TRIGGER usage_total_delete AFTER DELETE ON usage_hour REFERENCING OLD TABLE AS old_hours
	FOR EACH STATEMENT EXECUTE FUNCTION usage_total_keep();
--> statement-breakpoint
-- The triggers keep writers away until here.
INSERT INTO "usage_total" ("account_id", "charged_nano_usd") SELECT "account_id", sum("charged_nano_usd") FROM "usage_hour" GROUP BY 1;

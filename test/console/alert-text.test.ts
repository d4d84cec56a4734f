import { expect, test } from "bun:test";
import { englishText, translate } from "../../src/base/translate.ts";
import type { BatchRecord } from "../../src/batch/batch-record.ts";
import { STOP_REASONS } from "../../src/billing/stop-reasons.ts";
import { alertMail } from "../../src/console/alerts/alert-text.ts";
import { mailText } from "../../src/console/mail/mailer.ts";
import { batchEndMail } from "../../src/console/notices/batch-end-text.ts";

const MONEY = { balance: "12500000000", threshold: "20000000000", spent: "8010000000", cap: "10000000000" };
const FACTS: Readonly<Record<string, object>> = {
	"credit.low": {},
	"key.cap_reached": { key_id: "key_1", last_four: "abcd", percent: 80, period: "month" },
	"project.cap_reached": { project_id: "proj_1", percent: 100, period: "lifetime" },
	"key.expiring": { key_id: "key_1", last_four: "abcd", expires_at: "2027-01-31T12:00:00Z" },
	"spend.unusual": { hour: "2027-01-31T07:00:00Z", most: "1000000000" },
	"model.retiring": { model: "llama-3.3", retires_on: "2027-02-01" },
	"top_up.confirmed": { amount: "250500000000" },
};

test("a German mail formats amounts and times in German and has no English text", () => {
	const mails = Object.entries(FACTS).map(([type, data]) => [type, { ...MONEY, ...data }] as const);
	const stopped = Object.keys(STOP_REASONS).flatMap((reason) =>
		["needs_owner", "stopped"].map((state) => ["auto_top_up.stopped", { reason, state }] as const),
	);
	for (const [type, data] of [...mails, ...stopped]) {
		const { subject, says } = alertMail({ id: "evt_1", type, data, createdAtMs: 0 }, "Acme");
		for (const text of [subject, says]) {
			const german = translate("de", text);
			expect(german).not.toMatch(
				/undefined|null|[{}]|\d{4}-\d\d-\d\d|USD \d+\.\d|\bthe\b|\byour?\b|\bis\b|^ | {2}| \./i,
			);
			expect(englishText(text)).not.toMatch(/undefined|null|[{}]|^ | {2}| \./);
			expect([type, german]).not.toEqual([type, englishText(text)]);
		}
	}
	const said = (type: string) =>
		translate("de", alertMail({ id: "evt_1", type, data: { ...MONEY, ...FACTS[type] }, createdAtMs: 0 }, "Acme").says);
	expect(said("credit.low")).toStartWith("Das Guthaben beträgt USD 12,50 und liegt unter den USD 20,00,");
	expect(said("key.expiring")).toContain("läuft am 31.01.2027 um 12:00 Uhr (UTC) ab.");
	expect(said("model.retiring")).toContain("entfällt am 01.02.2027:");
	expect(said("project.cap_reached")).toEndWith("USD 8,01 von USD 10,00.");
});

test("the mail at a batch's end formats its cost in German", () => {
	const batch = { id: "batch_1", state: "expired", total: 3, completed: 2, failed: 1, chargedNanoUsd: 1_250_000_000 };
	const mail = batchEndMail(batch as unknown as BatchRecord, "Acme", "https://x.example");
	expect(mailText(mail, "de").text).toContain("Kosten: USD 1,25.");
	expect(mailText(mail, "en").text).toContain("Cost: USD 1.25.");
});

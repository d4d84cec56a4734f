import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { AUDIT_LABELS, actText } from "../../src/web/operator/audit-words.ts";

const SOURCE = join(import.meta.dir, "../../src");
const read = (path: string) => readFileSync(join(SOURCE, path), "utf8");

test("each audited action has a unique label, and entries use listed actions only", () => {
	const taken = [...read("billing/stripe-events.ts").matchAll(/^\t\tcase "([\w.]+)":$/gm)].map(
		([, type]) => `stripe.${type}`,
	);
	expect(taken.length).toBeGreaterThan(10);
	const worded = Object.keys(AUDIT_LABELS);
	expect(worded.filter((action) => action.startsWith("stripe.")).sort()).toEqual(taken.sort());
	const writers = [...new Bun.Glob("**/*.{ts,sql}").scanSync({ cwd: SOURCE })].filter(
		(path) => !path.startsWith("db/migrations") && /into audit_event/.test(read(path)),
	);
	// `audit.sql` gets its entries from `auditNotesJson` in ops/audit.ts, whose actions are typed.
	expect(writers.toSorted()).toEqual(["db/functions/audit.sql", "ops/audit.ts"]);
	expect(read("ops/audit.ts")).toContain("readonly action: AuditAction");
	const words = Object.values(AUDIT_LABELS);
	expect(words.filter((word, at) => words.indexOf(word) !== at)).toEqual([]);
	// Labels of audit entries are not sentences, so they have no full stop.
	expect(words.filter((word) => /[.?!]/.test(word))).toEqual([]);
	expect(actText("an.act of another version")).toBe("an.act of another version");
});

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { withService } from "../support/service.ts";
import { deployment } from "../support/upstream-endpoints.ts";

/** Texts about how long data is kept must be true for every configuration. */

const page = (path: string) => readFileSync(join(import.meta.dir, "../../src/web", `${path}.tsx`), "utf8");
const KEPT_DAYS = 7;
const service = await withService({
	models: deployment({ id: "m", url: "http://127.0.0.1:9/v1" }),
	env: { RETENTION_REFUSAL_DAYS: String(KEPT_DAYS), RETENTION_AUDIT_DAYS: "400" },
});

test("pages show for how long refused requests are stored, as configured", async () => {
	const config = await (await fetch(`${service.url}/api/console/public/config`)).json();
	expect(config).toMatchObject({ refusalsKeptDays: KEPT_DAYS });
	expect(page("pages/request")).not.toMatch(/kept for \d+ days/);
});

test("pages about stored data name batch files and RETENTION_AUDIT_DAYS", () => {
	expect(page("pages/requests")).toContain("are not stored, except in batch files");
	expect(page("operator/audit")).toContain("RETENTION_AUDIT_DAYS");
});

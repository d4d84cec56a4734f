import { expect } from "bun:test";
import type { Finding } from "../../../src/cli/doctor/finding.ts";

/** Expects exactly one finding with this state whose text matches. */
export function expectFinding(findings: readonly Finding[], state: Finding["state"], what: RegExp): Finding {
	const found = findings.filter((finding) => what.test(finding.what));
	expect({ what: String(what), found: found.map(({ state }) => state), all: findings }).toMatchObject({
		found: [state],
	});
	return found[0] as Finding;
}

export function expectWell(findings: readonly Finding[]): void {
	expect(findings.filter(({ state }) => state === "warning" || state === "broken")).toEqual([]);
}

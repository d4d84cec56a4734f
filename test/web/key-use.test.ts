import { expect, test } from "bun:test";
import { canSend, isProjectArchived } from "../../src/web/key-use.ts";

test("a key calls models only if it is active, not read-only, in no archived project", () => {
	const key = { state: "active", readsOnly: false, projectState: null } as const;
	const shown = [
		key,
		{ ...key, projectState: "active" },
		{ ...key, projectState: "archived" },
		{ ...key, projectState: "archived", state: "revoked" },
		{ ...key, state: "expired" },
		{ ...key, readsOnly: true },
	] as const;
	expect(shown.map((one) => [isProjectArchived(one), canSend(one)])).toEqual([
		[false, true],
		[false, true],
		[true, false],
		[false, false],
		[false, false],
		[false, false],
	]);
});

import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { newUuid } from "../../src/base/id.ts";
import { type JournalClaim, openJournalRoot } from "../../src/ledger/journal-root.ts";
import { openKeptJournals } from "../../src/ledger/lost-journal.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { openTestJournal, settledEvent } from "./fixture.ts";

const root = temporaryFolder();

function withHome(keepMs: number) {
	const dataDir = join(root, newUuid());
	const clock = createManualClock();
	const home = openJournalRoot(join(dataDir, "journal"));
	const kept = openKeptJournals({ clock }, join(dataDir, "journal-kept"), keepMs);
	const written = (epoch: number, settles = true): JournalClaim => {
		const claim = home.claim("one", epoch, { create: true }) as JournalClaim;
		const { journal } = openTestJournal(claim.disk, clock, {});
		if (settles) journal.settle(JSON.stringify(settledEvent("a", "k", 1, { id: newUuid() })));
		journal.close();
		return claim;
	};
	const journals = () => readdirSync(join(dataDir, "journal", "one"));
	return { clock, home, kept, written, journals };
}

test("a kept journal is listed with the end of its epoch and is not replayed", () => {
	const { home, kept, written, journals } = withHome(60_000);
	const claim = written(3);
	kept.keep(claim, { id: "one", epoch: 3 }, "77");
	claim.release();
	expect(journals()).toEqual([]);
	const [found] = kept.list();
	expect(found).toMatchObject({ id: "one", epoch: 3, ended: "77" });
	const again = home.claim("one", 3, { create: false, folder: found?.folder as string });
	expect(again).toMatchObject({ owner: { id: "one", epoch: 3 }, isAtHome: false, isCopy: false });
	// Keeps a journal again after a replay, which overwrites its recorded end.
	kept.keep(again as JournalClaim, { id: "one", epoch: 3 }, "99");
	again?.release();
	expect(kept.list().map(({ ended }) => ended)).toEqual(["99"]);
});

test.each([
	["no journal is to be kept", 0, "77", true],
	["the books do not know the end", 60_000, undefined, true],
	["it has no settlement", 60_000, "77", false],
] as const)("removes a journal if %s", (_, keepMs, ended, settles) => {
	const { kept, written, journals } = withHome(keepMs);
	kept.keep(written(1, settles), { id: "one", epoch: 1 }, ended);
	expect([kept.list(), journals()]).toEqual([[], []]);
});

test("kept journals are deleted after some time, and all of them on a full disk", () => {
	const { clock, kept, written } = withHome(60_000);
	const offMs = Date.now() - clock.wallMs();
	clock.advance(offMs);
	kept.keep(written(1), { id: "one", epoch: 1 }, "1");
	kept.keep(written(2), { id: "one", epoch: 2 }, "2");
	expect(kept.list().length).toBe(2);
	expect([kept.makeRoom(), kept.makeRoom(), kept.list().length]).toEqual([true, false, 0]);
	kept.keep(written(3), { id: "one", epoch: 3 }, "3");
	clock.advance(120_000);
	expect(kept.list()).toEqual([]);
});

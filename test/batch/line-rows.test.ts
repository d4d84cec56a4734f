import { expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import type { BatchBooks, LineOutcome } from "../../src/batch/batch-books.ts";
import { createLineRows, NOTHING } from "../../src/batch/line-rows.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";

const ROW: LineOutcome = { line: 1, id: "id", state: "output", part: 0, ...NOTHING };

// Three times with others, then by itself, and without what it used: behind the last one it waits.
test.each([1, 2, 3, 4, 5])(
	"a run that ends while its statement %i is under way leaves no mark that its outcomes are refused",
	async (last) => {
		const refused = new Set<string>();
		const answers: ((error: Error) => void)[] = [];
		const books = { outcomes: () => new Promise<boolean>((_, reject) => answers.push(reject)) } as Partial<BatchBooks>;
		const clock = createManualClock();
		const rows = createLineRows(
			{ books: books as BatchBooks, clock, log: silentLog, refused },
			{ batchId: "batch_1", run: 1 },
		);
		const over = new AbortController();
		let ended: unknown;
		rows.keep([ROW], over.signal).catch((error: unknown) => {
			ended = error;
		});
		for (let statement = 1; statement <= last; statement++) {
			await waitFor(() => {
				clock.advance(1_000);
				return answers.length === statement;
			}, `statement ${statement}`);
			if (statement === last) {
				over.abort();
				rows.stop();
			}
			answers.at(-1)?.(new Error("scripted: refused"));
		}
		await waitFor(() => {
			clock.advance(1_000);
			return ended !== undefined || refused.size > 0;
		}, "its end");
		expect([ended, refused.size, rows.pause(), answers.length]).toEqual([over.signal.reason, 0, null, last]);
	},
);

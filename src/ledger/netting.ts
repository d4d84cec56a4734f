import type { Log } from "../base/log.ts";
import type { Statements } from "../db/statements.ts";

/** Notes that one call looks at. */
const NOTES_MAX = 100;

/**
 * Takes the credit notes of version 0.1 off what it charged, so that *spent* is what was spent: `ledger_net` in
 * `../db/functions/netting.sql`. Each call goes on behind the last one, a note is one statement, done once whoever else
 * is at it, and what waits for something is looked at again in the next round. Where nothing waits it costs a look at
 * an empty index.
 */
export function createNetting(deps: { statements: Statements; log: Log }): { netSome(): Promise<number> } {
	const { statements, log } = deps;
	let after = "";
	return {
		/** How many it netted. */
		async netSome() {
			const notes = await statements<{ id: string }>`
				select id from ledger_entry where kind = 'credit_note' and not netted and id > ${after} order by id limit ${NOTES_MAX}`;
			let netted = 0;
			for (const { id } of notes) {
				const [row] = await statements<{ outcome: "netted" | "later" | "kept" }>`select ledger_net(${id}) as outcome`;
				if (row?.outcome === "netted") netted += 1;
				if (row?.outcome === "kept")
					log.warn("a credit note stays as it is: what it belongs to is not in the books any more", { entry: id });
			}
			after = notes.length === NOTES_MAX ? (notes.at(-1)?.id ?? "") : "";
			if (netted > 0) log.info("credit notes of version 0.1 were taken off what it had charged", { netted });
			return netted;
		},
	};
}

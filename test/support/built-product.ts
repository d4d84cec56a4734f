import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { buildBinary } from "../packaging/build-binary.ts";
import { isRunning } from "./processes.ts";

/**
 * The binary as it is shipped, for processes that a run of the tests starts: from source each start takes twice the work.
 * It lies in `folder`, from which programs can be run, until it is removed.
 */
export async function buildProduct(folder: string): Promise<{ readonly binary: string; remove(): void }> {
	for (const name of readdirSync(folder)) {
		const owner = /^product-(\d+)-/.exec(name)?.[1];
		// Of a run that was killed.
		if (owner !== undefined && !isRunning(Number(owner))) rmSync(join(folder, name), { recursive: true, force: true });
	}
	const home = mkdtempSync(join(folder, `product-${process.pid}-`));
	const remove = () => rmSync(home, { recursive: true, force: true });
	try {
		return { binary: await buildBinary(join(home, "tollgate")), remove };
	} catch (error) {
		remove();
		throw error;
	}
}

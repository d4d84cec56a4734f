import { readFile } from "node:fs/promises";
import { Fault } from "../base/fault.ts";
import { type CatalogCheck, checkCatalog, formatCatalogCheck } from "../catalog/file.ts";
import { RATE_NAMES, rateCardHistory, WRITTEN_UNITS, writtenRates } from "../catalog/rate-cards.ts";
import type { CommandContext, CommandOutput, CommandRuns } from "./command.ts";
import { formatTable } from "./table.ts";

export const catalogCommands: CommandRuns = {
	async "catalog check"({ env }, input) {
		return checkOutput(checkCatalog(await readText(input.argument(0)), env));
	},
	"catalog show"(context, input) {
		const model = input.optionalArgument(0);
		return model === undefined ? showFile(context) : showHistory(context, model);
	},
};

async function showFile({ config, env }: CommandContext): Promise<CommandOutput> {
	const { configPath } = config();
	if (configPath === null)
		throw new Fault("not_found", "There is no catalogue. Set CONFIG, or create a tollgate.yaml in this folder.");
	return checkOutput(checkCatalog(await readText(configPath), env));
}

async function showHistory({ withDatabase }: CommandContext, model: string): Promise<CommandOutput> {
	const versions = await withDatabase(({ statements }) => rateCardHistory(statements, model));
	if (versions.length === 0) throw new Fault("not_found", `The model ${model} has no stored prices.`);
	const rows = versions.map((card) => ({
		rate_card: card.id,
		since: new Date(card.storedS * 1000).toISOString(),
		...writtenRates(card),
	}));
	// Shows columns only for rates that at least one model charges: most catalogues use two or three of seven.
	const charged = RATE_NAMES.filter((name) => rows.some((row) => row[name] !== "0"));
	const table = formatTable(
		["RATE CARD", "SINCE", ...charged.map((name) => name.toUpperCase().replace("_", " "))],
		rows.map((row) => [row.rate_card, row.since, ...charged.map((name) => row[name])]),
	);
	return { json: { model, rate_cards: rows }, text: `${table}\n\n${WRITTEN_UNITS}` };
}

function checkOutput(result: CatalogCheck): CommandOutput {
	const json = result.ok
		? { ok: true, models: result.models, warnings: result.warnings }
		: { ok: false, problems: result.problems };
	return { json, text: formatCatalogCheck(result), exitCode: result.ok ? 0 : 1 };
}

async function readText(path: string): Promise<string> {
	try {
		return await readFile(path, "utf8");
	} catch (cause) {
		throw new Fault("not_found", `Cannot read the file ${path}.`, { cause });
	}
}

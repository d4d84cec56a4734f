import { formatCount } from "../format.ts";
import { showLineCost, showRatePerMillion, showRatePerUnit } from "../shown-money.ts";
import { t } from "../texts.tsx";
import type { RequestDetail } from "../views.ts";
import { Empty } from "./problem.tsx";
import { DataTable } from "./table.tsx";

const LINES: Readonly<Record<RequestDetail["lines"][number]["name"], string>> = {
	input: t("Input"),
	cachedInput: t("Cached input"),
	output: t("Output"),
	request: t("Request"),
	image: t("Images"),
	audioSecond: t("Audio"),
	search: t("Searches"),
};
const UNITS: Readonly<Record<string, string>> = {
	token: t("per million tokens"),
	request: t("per request"),
	image: t("per image"),
	second: t("per second"),
	search: t("per search"),
};

export function CostLines({ lines }: Pick<RequestDetail, "lines">) {
	return (
		<DataTable
			label={t("Cost breakdown")}
			rows={lines}
			rowKey={(line) => line.name}
			empty={<Empty title={t("Nothing was charged.")} />}
			columns={[
				{ label: t("Description"), lead: true, render: (line) => LINES[line.name] },
				{ label: t("Units"), figure: (line) => formatCount(line.units) },
				{
					label: t("Rate"),
					figure: (line) => (
						<>
							{line.unit === "token" ? showRatePerMillion(line.rate) : showRatePerUnit(line.rate)}{" "}
							<span className="dim">{UNITS[line.unit] ?? line.unit}</span>
						</>
					),
				},
				{ label: t("Amount"), figure: showLineCost },
			]}
		/>
	);
}

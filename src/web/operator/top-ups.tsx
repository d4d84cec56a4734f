import { SegmentedControl } from "@mantine/core";
import { stateText } from "../labels.ts";
import { Page, Panel } from "../parts/page.tsx";
import { Empty } from "../parts/problem.tsx";
import { useList } from "../resource.ts";
import { useQueryState } from "../router.tsx";
import { inSentence, t } from "../texts.tsx";
import { operatorApi } from "./api.ts";
import { WaitingTable } from "./waiting-table.tsx";

const STATES = ["pending", "confirmed", "rejected", "refunded", "disputed"] as const;

export function TopUpsPage() {
	const [query, change] = useQueryState();
	const state = STATES.find((item) => item === query.get("state")) ?? "pending";
	const list = useList(`operator-top-ups ${state}`, (after) => operatorApi.topUps(state, after));
	return (
		<Page title={t("Top-ups")} lead={t("Credit is given only for money that was seen.")}>
			<SegmentedControl
				size="xs"
				aria-label={t("State")}
				data={STATES.map((value) => ({ value, label: stateText(value) }))}
				value={state}
				onChange={(value) => change({ state: value === "pending" ? null : value })}
			/>
			<Panel flush>
				<WaitingTable
					rows={list.items}
					error={list.error}
					onDecided={() => void list.reload()}
					more={list.next === null ? undefined : list.more}
					empty={
						state === "pending" ? undefined : (
							<Empty title={t("No top-up is {state}.", { state: inSentence(stateText(state)) })} />
						)
					}
				/>
			</Panel>
		</Page>
	);
}

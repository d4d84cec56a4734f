import { Button, NumberInput, Skeleton } from "@mantine/core";
import { useState } from "react";
import { formatUsd } from "../../money/nano-usd.ts";
import { api } from "../api.ts";
import { SEPARATORS } from "../format.ts";
import { mailedBelow } from "../labels.ts";
import { Form, fieldError, otherError, PanelEnd } from "../parts/form.tsx";
import { Panel } from "../parts/page.tsx";
import { Moment } from "../parts/text.tsx";
import { useAction } from "../resource.ts";
import { useAccount } from "../session.tsx";
import { showUsd } from "../shown-money.ts";
import { rich, t } from "../texts.tsx";
import type { AlertView } from "../views.ts";

/** Setting for a mail to the owners when the available credit falls below an amount. */
export function AlertPanel({ alert, onChanged }: { alert: AlertView | undefined; onChanged: () => void }) {
	const account = useAccount();
	const [usd, setUsd] = useState<string>();
	const save = useAction(async (amount: string | null) => {
		await api.setAlert(account.id, amount);
		setUsd(undefined);
		onChanged();
	});
	if (!alert) {
		return (
			<Panel title={t("Low-balance alert")}>
				<Skeleton height={90} />
			</Panel>
		);
	}
	const threshold = alert.thresholdNanoUsd;
	return (
		<Panel title={t("Low-balance alert")}>
			<Form
				onSubmit={() => {
					if (usd) void save.run(usd);
				}}
				error={otherError(save, "usd")}
				end={
					<PanelEnd label={t("Save")} busy={save.busy} disabled={!usd} main>
						{threshold !== null && (
							<Button variant="default" loading={save.busy} onClick={() => void save.run(null)}>
								{t("Switch off")}
							</Button>
						)}
					</PanelEnd>
				}
			>
				<p>
					{threshold === null
						? t("No alert is set. Requests are refused with 402 when the credit runs out.")
						: mailedBelow(showUsd(threshold))}
				</p>
				<NumberInput
					label={t("Mail below, in USD")}
					placeholder={threshold === null ? "25" : undefined}
					hideControls
					decimalScale={2}
					{...SEPARATORS}
					allowNegative={false}
					value={usd ?? (threshold === null ? "" : formatUsd(threshold))}
					error={fieldError(save, "usd")}
					onValueChange={(value, source) => {
						if (source.source === "event") setUsd(value.value);
					}}
				/>
				{alert.lastSentAtMs !== null && (
					<p className="small dim">
						{rich("Last sent {lastSent}", { lastSent: <Moment atMs={alert.lastSentAtMs} /> })}
					</p>
				)}
			</Form>
		</Panel>
	);
}

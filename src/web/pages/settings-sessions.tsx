import { Button } from "@mantine/core";
import { api } from "../api.ts";
import { LinkButton } from "../parts/form.tsx";
import { Panel } from "../parts/page.tsx";
import { Empty, Problem } from "../parts/problem.tsx";
import { DataTable, fromItems } from "../parts/table.tsx";
import { Ago } from "../parts/text.tsx";
import { useAction, useResource } from "../resource.ts";
import { t } from "../texts.tsx";
import type { SessionView } from "../views.ts";

/** The viewer's sessions. */
export function SessionsPanel() {
	const sessions = useResource("sessions", api.sessions);
	const end = useAction(async (id: string) => {
		await api.revokeSession(id);
		await sessions.reload();
	});
	const endOthers = useAction(async () => {
		await api.revokeOtherSessions();
		await sessions.reload();
	});
	const failure = end.error ?? endOthers.error;
	return (
		<Panel
			title={t("Sessions")}
			flush
			aside={
				sessions.data &&
				sessions.data.items.length > 1 && (
					<Button size="xs" variant="default" loading={endOthers.busy} onClick={() => void endOthers.run()}>
						{t("End all others")}
					</Button>
				)
			}
		>
			{failure && <Problem error={failure} />}
			<DataTable
				label={t("Sessions")}
				{...fromItems(sessions)}
				rowKey={(session) => session.id}
				empty={<Empty title={t("No session is open.")} />}
				columns={[
					{
						label: t("Device"),
						lead: true,
						render: (session) => `${deviceOf(session)}${session.current ? t(" (this one)") : ""}`,
					},
					{ label: t("Address"), render: (session) => session.ip ?? "–" },
					{ label: t("Signed in"), render: (session) => <Ago atMs={session.createdAtMs} /> },
					{ label: t("Ends"), render: (session) => <Ago atMs={session.expiresAtMs} /> },
					{
						label: t("Action"),
						act: true,
						right: true,
						render: (session) =>
							session.current ? null : <LinkButton onClick={() => void end.run(session.id)}>{t("End")}</LinkButton>,
					},
				]}
			/>
		</Panel>
	);
}

/** Browser and system, to recognize a device. */
function deviceOf({ userAgent }: SessionView): string {
	const agent = userAgent ?? "";
	const browser = ["Edg", "Firefox", "Chrome", "Safari"].find((name) => agent.includes(name));
	const system = [
		["iPhone", "iPhone"],
		["Android", "Android"],
		["Windows", "Windows"],
		["Mac OS", "macOS"],
		["Linux", "Linux"],
	].find(([mark]) => mark !== undefined && agent.includes(mark))?.[1];
	const name = browser === "Edg" ? "Edge" : browser;
	if (name && system) return t("{browser} on {system}", { browser: name, system });
	return (name ?? system ?? agent.slice(0, 40)) || t("Unknown device");
}

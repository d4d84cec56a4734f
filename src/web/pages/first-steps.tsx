import { Box, Button, Group, Skeleton, Stack, ThemeIcon, VisuallyHidden } from "@mantine/core";
import type { ReactNode } from "react";
import { lazy } from "../lazy.tsx";
import { Icon } from "../parts/icons.tsx";
import { Panel } from "../parts/page.tsx";
import { Link } from "../router.tsx";
import { useMay, useSession } from "../session.tsx";
import { showUsd } from "../shown-money.ts";
import { t } from "../texts.tsx";
import type { Checklist } from "../views.ts";

const ToolChoice = lazy(() => import("../snippets/tool-choice.tsx"), <Skeleton height={260} />);

/** Conditions for access, each with its next step; updated live. */
export function FirstSteps({ checklist, pendingTopUps }: { checklist: Checklist; pendingTopUps: number }) {
	const { config } = useSession();
	const may = useMay();
	const finished = Object.values(checklist).every(Boolean);
	const minimum = showUsd(config.topUpMinNanoUsd);
	const waiting = pendingTopUps > 0 && !checklist.toppedUp;
	return (
		<Panel title={finished ? t("All set") : t("First steps")}>
			<Stack component="ol" className="bare checklist">
				<Step number={1} done={checklist.signedIn} what={t("Signed in")} />
				<Step
					number={2}
					done={checklist.toppedUp}
					what={waiting ? t("Top-up: waiting for verification") : t("Top-up confirmed")}
					why={
						waiting
							? t("The operator checks the payment. This line turns green by itself; there is nothing to reload.")
							: t("Access opens with the first confirmed top-up of at least {minimum}.", { minimum })
					}
					action={
						may("credit.buy") && (
							<Button component={Link} to="/credit" size="xs" variant={waiting ? "default" : "filled"}>
								{waiting ? t("See the top-up") : t("Top up")}
							</Button>
						)
					}
				/>
				<Step
					number={3}
					done={checklist.keyMade}
					what={t("API key made")}
					why={t("One key for each application and environment. The secret is shown once.")}
					action={
						may("keys.change") && (
							<Button
								component={Link}
								to="/keys?create=1"
								size="xs"
								variant={checklist.toppedUp ? "filled" : "default"}
							>
								{t("Create a key")}
							</Button>
						)
					}
				/>
				<Step
					number={4}
					done={checklist.firstRequest}
					what={t("First request seen")}
					why={t("Ask in the playground, or with your own tool. This line turns green when the request arrives.")}
					action={
						may("requests.send") && (
							<Button component={Link} to="/playground" size="xs" variant="default">
								{t("Use the playground")}
							</Button>
						)
					}
				>
					{!checklist.firstRequest && checklist.keyMade && <ToolChoice />}
				</Step>
			</Stack>
		</Panel>
	);
}

function Step(props: {
	number: number;
	done: boolean;
	what: string;
	why?: string;
	action?: ReactNode;
	children?: ReactNode;
}) {
	const { number, done, what, why, action, children } = props;
	return (
		<li>
			<Group align="flex-start" gap="sm">
				<ThemeIcon size={22} radius="xl" variant={done ? "filled" : "default"} color="green.9" aria-hidden="true">
					{done ? <Icon name="check" size={14} /> : number}
				</ThemeIcon>
				<Box flex="1 1 200px">
					<strong>{what}</strong>
					<VisuallyHidden> {done ? t("(done)") : t("(to do)")}</VisuallyHidden>
					{!done && why && <p className="dim">{why}</p>}
				</Box>
				{!done && action}
			</Group>
			{!done && children && <Box mt="sm">{children}</Box>}
		</li>
	);
}

import { Anchor, Button, type ButtonProps, Group, Stack } from "@mantine/core";
import type { ReactNode } from "react";
import type { ApiError } from "../http.ts";
import type { Action } from "../resource.ts";
import { Link } from "../router.tsx";
import { Icon, type IconName } from "./icons.tsx";
import { ErrorMessage } from "./page.tsx";

export const fieldError = ({ error }: { error: ApiError | undefined }, field: string): string | undefined =>
	error?.param === field ? error.message : undefined;

/** Returns the form's error, unless its `param` is in `fields`: then that field shows it. */
export const otherError = ({ error }: { error: ApiError | undefined }, ...fields: string[]): ApiError | undefined =>
	fields.some((field) => field === error?.param) ? undefined : error;

/** A form that sends by script, on button or Enter. Errors appear above the buttons. */
export function Form(props: {
	onSubmit: () => void;
	error?: ApiError | undefined;
	end?: ReactNode;
	children: ReactNode;
}) {
	return (
		<form
			onSubmit={(event) => {
				event.preventDefault();
				props.onSubmit();
			}}
		>
			<Stack gap="sm">
				{props.children}
				{props.error && <ErrorMessage error={props.error} />}
				{props.end}
			</Stack>
		</form>
	);
}

type Act = Pick<Action<[], unknown>, "run" | "busy" | "error">;

interface ActionFormProps {
	readonly action: Act;
	readonly act: string;
	readonly disabled?: boolean;
	readonly onSubmit?: () => void;
	readonly more?: ReactNode;
	readonly children: ReactNode;
}

export function PanelForm(
	props: ActionFormProps & {
		readonly main?: boolean;
		readonly error?: ApiError | undefined;
		readonly fields?: readonly string[];
		/** Text above the buttons, such as "Saved". */
		readonly notice?: ReactNode;
		/** Reason why the user may not submit; replaces the buttons. */
		readonly denied?: string | false;
	},
) {
	const { action, error = action.error, main = false, disabled = false } = props;
	return (
		<Form
			onSubmit={props.onSubmit ?? (() => void action.run())}
			error={otherError({ error }, ...(props.fields ?? []))}
			end={
				<>
					{props.notice}
					{props.denied ? (
						<p className="small dim">{props.denied}</p>
					) : (
						<Group justify="flex-end" gap="xs">
							{props.more}
							<ActButton submit size="sm" look={main ? "main" : "plain"} label={props.act} {...{ action, disabled }} />
						</Group>
					)}
				</>
			}
		>
			{props.children}
		</Form>
	);
}

export function AuthForm({ action, act, more, onSubmit, children }: Omit<ActionFormProps, "disabled">) {
	return (
		<Form
			onSubmit={onSubmit ?? (() => void action.run())}
			error={action.error}
			end={
				<>
					<ActButton submit size="sm" look="main" label={act} action={action} />
					{more}
				</>
			}
		>
			{children}
		</Form>
	);
}

/** Form in one line, such as below a table. `more` appears below the form. */
export function LineForm({ action, act, disabled = false, more, children }: Omit<ActionFormProps, "onSubmit">) {
	return (
		<Form onSubmit={() => void action.run()} error={action.error} end={more}>
			<Group align="flex-end" gap="xs">
				{children}
				<ActButton submit label={act} {...{ action, disabled }} />
			</Group>
		</Form>
	);
}

const LOOKS = {
	main: { variant: "filled" },
	plain: { variant: "default" },
	danger: { variant: "light", color: "red" },
	/** Style of buttons for irreversible or negative actions, such as Reject. */
	final: { variant: "filled", color: "red" },
	text: { variant: "subtle" },
} as const satisfies Record<string, ButtonProps>;

/** A button that submits its form, runs an action, calls a function, or opens the page `to`. */
export function ActButton(props: {
	label: ReactNode;
	submit?: boolean;
	action?: Pick<Act, "run" | "busy">;
	busy?: boolean;
	onClick?: () => void;
	to?: string;
	look?: keyof typeof LOOKS;
	icon?: IconName;
	size?: "xs" | "sm";
	disabled?: boolean;
	pressed?: boolean;
}) {
	const { label, action, to, look = "plain", icon, size = "xs" } = props;
	const drawn = { size, ...LOOKS[look], ...(icon ? { leftSection: <Icon name={icon} /> } : {}) };
	if (to !== undefined)
		return (
			<Button component={Link} to={to} {...drawn}>
				{label}
			</Button>
		);
	return (
		<Button
			{...drawn}
			loading={action?.busy ?? props.busy ?? false}
			disabled={props.disabled ?? false}
			{...(props.pressed === undefined ? {} : { "aria-pressed": props.pressed })}
			{...(props.submit ? { type: "submit" } : { onClick: props.onClick ?? (() => void action?.run()) })}
		>
			{label}
		</Button>
	);
}

export function LinkButton(props: {
	onClick: () => void;
	children: ReactNode;
	id?: string;
	"aria-expanded"?: boolean;
	"aria-label"?: string;
}) {
	return <Anchor component="button" type="button" inherit {...props} />;
}

export function DownloadButton({ href, label = "CSV" }: { href: string; label?: string }) {
	return (
		<Button component="a" href={href} download size="xs" variant="default" leftSection={<Icon name="download" />}>
			{label}
		</Button>
	);
}

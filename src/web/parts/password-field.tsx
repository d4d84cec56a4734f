import { PasswordInput } from "@mantine/core";
import { t } from "../texts.tsx";

interface PasswordFieldProps {
	readonly label: string;
	readonly value: string;
	readonly onChange: (value: string) => void;
	readonly autoComplete: "current-password" | "new-password";
	readonly description?: string;
	readonly name?: string;
	readonly minLength?: number;
	readonly maxLength?: number;
}

/** A password that must be given, with a button that shows it. */
export function PasswordField({ onChange, ...rest }: PasswordFieldProps) {
	return (
		<PasswordInput
			required
			withAsterisk={false}
			onChange={(event) => onChange(event.currentTarget.value)}
			visibilityToggleButtonProps={{ "aria-label": t("Show the password") }}
			{...rest}
		/>
	);
}

import com.fasterxml.jackson.databind.ObjectMapper;
import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.JsonValue;
import com.openai.helpers.ChatCompletionAccumulator;
import com.openai.models.FunctionDefinition;
import com.openai.models.FunctionParameters;
import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.chat.completions.ChatCompletionFunctionTool;
import com.openai.models.chat.completions.ChatCompletionToolMessageParam;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

class Client {
	static final OpenAIClient CLIENT = OpenAIOkHttpClient.fromEnv();

	static ChatCompletionCreateParams.Builder ask() {
		return ChatCompletionCreateParams.builder().model(System.getenv("MODEL")).addUserMessage("What time is it in Paris?");
	}

	static String textOf(ChatCompletion completion) {
		var choice = completion.choices().get(0);
		return choice.message().content().orElse("") + " " + choice.finishReason();
	}

	static String stream() {
		var accumulator = ChatCompletionAccumulator.create();
		try (var chunks = CLIENT.chat().completions().createStreaming(ask().build())) {
			chunks.stream().forEach(accumulator::accumulate);
		}
		return textOf(accumulator.chatCompletion());
	}

	static String tool() {
		var city = Map.of("city", Map.of("type", "string"));
		var parameters = FunctionParameters.builder()
			.putAdditionalProperty("type", JsonValue.from("object"))
			.putAdditionalProperty("properties", JsonValue.from(city))
			.putAdditionalProperty("required", JsonValue.from(List.of("city")))
			.build();
		var function = FunctionDefinition.builder().name("get_time").parameters(parameters).build();
		var ask = ask().addTool(ChatCompletionFunctionTool.builder().function(function).build());
		var message = CLIENT.chat().completions().create(ask.build()).choices().get(0).message();
		var call = message.toolCalls().get().get(0).asFunction();
		ask.addMessage(message).addMessage(ChatCompletionToolMessageParam.builder().toolCallId(call.id()).content("noon").build());
		return call.function().arguments() + " " + textOf(CLIENT.chat().completions().create(ask.build()));
	}

	static void play(String name, Callable<String> run) throws Exception {
		String value;
		try {
			value = run.call();
		} catch (Exception error) {
			value = error.toString();
		}
		System.out.println("@@" + new ObjectMapper().writeValueAsString(List.of(name, value)));
	}

	public static void main(String[] args) throws Exception {
		play("chat", () -> textOf(CLIENT.chat().completions().create(ask().build())));
		play("stream", Client::stream);
		play("tool", Client::tool);
		System.exit(0);
	}
}

# Homebrew formula of hopgate; the release fills in version, addresses and checksums.
class Hopgate < Formula
  desc "Gateway between coding agents or chat apps and any LLM vendor"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "@URL:darwin-arm64@"
      sha256 "@SUM:darwin-arm64@"
    end
    on_intel do
      url "@URL:darwin-x64@"
      sha256 "@SUM:darwin-x64@"
    end
  end

  on_linux do
    on_arm do
      url "@URL:linux-arm64@"
      sha256 "@SUM:linux-arm64@"
    end
    on_intel do
      url "@URL:linux-x64@"
      sha256 "@SUM:linux-x64@"
    end
  end

  def install
    bin.install "hopgate"
    man1.install "man/hopgate.1"
    bash_completion.install "completions/hopgate.bash" => "hopgate"
    zsh_completion.install "completions/_hopgate"
    fish_completion.install "completions/hopgate.fish"
    doc.install "README.md", "README.zh-CN.md", "CHANGELOG.md", "LICENSE", "THIRD-PARTY-NOTICES.txt"
  end

  def post_install
    return unless OS.mac?

    # A runtime built elsewhere may carry a signature that does not fit; macOS would end such a program.
    signed = quiet_system "codesign", "--verify", bin/"hopgate"
    system "codesign", "--force", "--sign", "-", bin/"hopgate" unless signed
  end

  service do
    run [opt_bin/"hopgate", "serve", "--drain", "@DRAIN@"]
    keep_alive successful_exit: false
    log_path var/"log/hopgate.log"
    error_log_path var/"log/hopgate.log"
    environment_variables PATH: std_service_path_env
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/hopgate version")
    port = free_port
    pid = spawn bin/"hopgate", "serve", "--port", port.to_s
    begin
      assert_match "ok", shell_output("curl --silent --retry 10 --retry-connrefused http://127.0.0.1:#{port}/healthz")
    ensure
      Process.kill "TERM", pid
      Process.wait pid
    end
  end
end
